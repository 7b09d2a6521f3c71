"""`python -m srbench_cli` is `sr-bench`."""

from srbench_cli.main import main

main()
