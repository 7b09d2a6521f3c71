"""Messages as JSON: names, numbers, and what is unknown."""

from __future__ import annotations

import pytest
from srbench.v1 import accounting_service_pb2 as accounting
from srbench.v1 import planner_service_pb2 as planner
from srbench.v1 import report_pb2 as report
from srbench_kit import jsonview
from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json, from_value, to_value


def test_unknown_numbers_are_null_and_known_zeros_are_zero() -> None:
    spend = jsonview.to_json(accounting.Spend(run_id="run-1", known_cost_picodollars=1_500_000_000_000))
    assert spend["known_cost_usd"] == 1.5
    assert spend["reserved_usd"] == 0
    assert spend["max_cost_usd"] is None


def test_times_are_seconds_under_their_http_names() -> None:
    call = accounting.Call(status=accounting.CALL_STATUS_SENT_UNKNOWN)
    call.start_time.FromNanoseconds(1_500_000_000)
    call.activity.phase_start_time.FromNanoseconds(2_000_000_000)
    seen = jsonview.to_json(call)
    assert (seen["started_at"], seen["finished_at"], seen["status"]) == (1.5, None, "sent_unknown")
    assert isinstance(seen["activity"], dict)
    assert seen["activity"]["phase_started_at"] == 2.0


def test_maps_lists_values_and_nested_messages_are_plain_json() -> None:
    event = planner.RunEvent(seq=3, data=to_value({"a": [1, 2.5, None], "b": 2**70}))
    assert jsonview.to_json(event)["data"] == {"a": [1, 2.5, None], "b": 2**70}
    metrics = report.Metrics(id="t", selected_models={"b": 2, "a": 1}, accuracy_ci95=[0.1, 0.2])
    seen = jsonview.to_json(metrics)
    assert seen["selected_models"] == {"a": 1, "b": 2}
    assert seen["accuracy_ci95"] == [0.1, 0.2]


def test_a_value_that_the_other_side_could_not_read_is_refused_at_once() -> None:
    def nested(depth: int, wrap: bool) -> Json:
        json: Json = 1
        for _ in range(depth):
            json = {"a": json} if wrap else [json]
        return json

    for depth, wrap in ((30, True), (45, False)):
        message = planner.CreateRunRequest(manifest=to_value(nested(depth, wrap)))
        again = planner.CreateRunRequest.FromString(message.SerializeToString())
        assert from_value(again.manifest) == nested(depth, wrap)
        with pytest.raises(InvalidInput, match="nested deeper"):
            to_value(nested(depth + 1, wrap))
