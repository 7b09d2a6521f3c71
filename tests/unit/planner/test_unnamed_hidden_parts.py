"""Cases that nobody could ever judge are told before a plan may cost anything."""

from __future__ import annotations

from srbench_planner.prerequisites import unnamed


def test_a_case_without_a_hidden_part_is_told_and_others_are_left_alone() -> None:
    cases = [
        {"id": "tau3/a/1", "benchmark": "tau3", "metadata": {"domain": "airline", "source_task_sha256": "0"}},
        {"id": "tau3/a/2", "benchmark": "tau3", "metadata": {"hidden_sha256": "0"}},
        {"id": "livecodebench/1", "benchmark": "livecodebench", "metadata": {"source_record": {}}},
        {"id": "tau3/a/3", "benchmark": "tau3"},
        {"id": "hle/1", "benchmark": "hle", "metadata": {}},
    ]
    assert unnamed(cases, ["tau3", "livecodebench"]) == ["tau3/a/1", "tau3/a/3"]
