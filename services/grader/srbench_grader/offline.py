"""Grades without a service: `python -m srbench_grader.offline`, for who verifies a bundle with answers.

Reads JSON lines `{"grader", "text", "reference"}` and prints for each `{"correct", "strict_format"}`; both are null where
the grade needs more than the text, such as a judge or a sandbox.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from google.protobuf.json_format import ParseDict
from srbench.v1 import grader_service_pb2 as pb
from srbench_kit.errors import SrBenchError
from srbench_kit.values import Json

from srbench_grader import convert
from srbench_grader.grading import Grader
from srbench_grader.registry import load_graders


def grade(row: Mapping[str, Json], graders: Mapping[str, Grader]) -> dict[str, Json]:
    """The grade of one text; nulls where there is none."""
    nothing: dict[str, Json] = {"correct": None, "strict_format": None}
    grader = graders.get(str(row["grader"]))
    if grader is None or grader.judge is None:
        # A grader that runs programs needs its sandbox.
        return nothing
    given = row["reference"]
    assert isinstance(given, dict)
    try:
        grading = grader.judge(str(row["text"]), convert.case(ParseDict(given, pb.Reference())), ())
    except SrBenchError:
        return nothing
    return {"correct": grading.correct, "strict_format": grading.strict_format}


def main() -> None:
    """Reads stdin to its end."""
    graders = load_graders()
    for line in sys.stdin:
        print(json.dumps(grade(json.loads(line), graders)))


if __name__ == "__main__":
    main()
