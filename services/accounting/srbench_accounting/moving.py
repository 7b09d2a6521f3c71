"""`python -m srbench_accounting.moving`: this service's part of `sr-bench store migrate`."""

from __future__ import annotations

from srbench_kit import logs, store_copy

from srbench_accounting.schema import HEAD, metadata

if __name__ == "__main__":
    logs.configure("accounting")
    store_copy.command("accounting", HEAD, metadata)()
