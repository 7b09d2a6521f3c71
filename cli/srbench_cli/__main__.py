"""`python -m srbench_cli` is `sr-bench`."""

from srbench_cli.entry import sr_bench

sr_bench()
