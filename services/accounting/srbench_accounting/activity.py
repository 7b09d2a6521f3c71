"""What calls are doing now: told by executors about once a second, kept in memory, never a fact."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from srbench.v1 import accounting_service_pb2 as pb

from srbench_accounting.evidence import CallKey, key_of

# An executor that has been silent for so long tells nothing about now.
STALE_S = 30.0


@dataclass(slots=True)
class _Report:
    told_s: float
    report: pb.ActivityReport
    # Made when somebody looks: reports come every second, whether anybody looks or not.
    by_key: dict[CallKey, pb.CallActivity] | None = None

    def find(self, key: CallKey) -> pb.CallActivity | None:
        if self.by_key is None:
            self.by_key = {key_of(call.key): call for call in self.report.calls}
        return self.by_key.get(key)


@dataclass(slots=True)
class ActivityBoard:
    """The last report of each executor. A report lists every call in flight, so it takes the place of the one before."""

    _reports: dict[str, _Report] = field(default_factory=dict)
    _told: dict[str, pb.ActivityReport] = field(default_factory=dict)

    def told(self) -> list[pb.ActivityReport]:
        """The last report of each executor that has told something since this was asked."""
        found, self._told = list(self._told.values()), {}
        return found

    def tell(self, report: pb.ActivityReport, now_s: float | None = None) -> None:
        """Takes in a report; forgets executors that have been silent."""
        self._told[report.executor_id] = report
        now_s = time.monotonic() if now_s is None else now_s
        self._reports[report.executor_id] = _Report(now_s, report)
        for name in [name for name, old in self._reports.items() if now_s - old.told_s > STALE_S]:
            del self._reports[name]

    def find(self, key: CallKey, now_s: float | None = None) -> pb.CallActivity | None:
        """What the call is doing; `None` when nobody said so lately."""
        now_s = time.monotonic() if now_s is None else now_s
        for report in list(self._reports.values()):
            if now_s - report.told_s <= STALE_S and (found := report.find(key)) is not None:
                return found
        return None
