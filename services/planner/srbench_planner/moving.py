"""`python -m srbench_planner.moving`: this service's part of `sr-bench store migrate`."""

from __future__ import annotations

from srbench_kit import logs, store_copy

from srbench_planner.store import HEAD, metadata

if __name__ == "__main__":
    logs.configure("planner")
    store_copy.command("planner", HEAD, metadata)()
