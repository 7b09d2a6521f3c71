"""References of cases without a service: `python -m srbench_planner.references`, for who verifies a bundle with answers.

Reads JSON lines `{"index", "grader", "case"}` and prints for each the `Reference` that a grader takes, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from google.protobuf.json_format import MessageToDict
from srbench.v1 import grader_service_pb2 as pb
from srbench_kit.values import Json, fill_value

from srbench_planner.reference_rules import choice_count


def reference(index: int, case: Mapping[str, Json], grader: str) -> pb.Reference:
    """What the case at `index` is graded by."""
    found = pb.Reference(case_index=index, case_id=str(case["id"]), benchmark=str(case["benchmark"]))
    fill_value(found.answer, case.get("answer"))
    fill_value(found.metadata, case.get("metadata"))
    found.choice_count = choice_count(case, grader)
    return found


def main() -> None:
    """Reads stdin to its end."""
    for line in sys.stdin:
        row = json.loads(line)
        found = reference(row["index"], row["case"], row["grader"])
        print(json.dumps(MessageToDict(found, preserving_proto_field_name=True), ensure_ascii=False))


if __name__ == "__main__":
    main()
