"""Where the offsets of a group would move: every form of a reset, inside of the logs, with what is read again or skipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidelog.client.calls import Partition
from tidelog.console.asking.plans import PlanRow
from tidelog.console.reading.fetching import Bounds

EARLIEST, LATEST, OFFSET, TIME, SHIFT = "earliest", "latest", "offset", "time", "shift"
LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""
KINDS = (EARLIEST, LATEST, OFFSET, TIME, SHIFT)


@dataclass(frozen=True, slots=True)
class Target:
    """``value``: the offset, the epoch ms, or the records to shift by."""

    kind: str
    value: int = 0

    def flags(self) -> list[str]:
        """As ``--reset-offsets`` takes it."""
        match self.kind:
            case "earliest" | "latest":
                return [f"--to-{self.kind}"]
            case "offset":
                return ["--to-offset", str(self.value)]
            case "shift":
                return ["--shift-by", str(self.value)]
        if self.value > LAST_MS:
            return ["--to-latest"]  # no record is younger
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.value)
        return ["--to-datetime", when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}"]


@dataclass(frozen=True, slots=True)
class Move:
    """One partition: None where it had no offset. ``problem``: why it does not move."""

    at: Partition
    before: int | None
    after: int | None
    bounds: Bounds
    problem: str | None = None

    def row(self) -> PlanRow:
        topic, index = self.at
        before = None if self.before is None else str(self.before)
        return PlanRow(f"{topic}-{index}", before, None if self.after is None else str(self.after), self.problem or self._note())

    def _note(self) -> str | None:
        if self.after is None:
            return None
        if self.before is None:
            return "had no offset"
        if self.after == self.before:
            return "stays"
        if self.after < self.before:
            return f"{self.before - self.after} records again"
        lost = max(0, (self.bounds.start or 0) - self.before)
        skipped = self.after - self.before - lost
        gone = f"{lost} records were gone already" if lost else ""
        return ", ".join(part for part in (f"{skipped} records skipped" if skipped else "", gone) if part)


def moves(
    target: Target,
    before: Mapping[Partition, int | None],
    limits: Mapping[Partition, Bounds],
    by_time: Mapping[Partition, int | None],
) -> list[Move]:
    """A move for each partition in ``before``. ``by_time``: the offsets of a target in time, None for the end."""
    return [_move(target, at, old, limits[at], by_time.get(at)) for at, old in sorted(before.items())]


def _move(target: Target, at: Partition, old: int | None, limits: Bounds, by_time: int | None) -> Move:
    if limits.start is None or limits.end is None:
        return Move(at, old, None, limits, f"its offsets cannot be read: {limits.error}")
    match target.kind:
        case "earliest":
            wanted = limits.start
        case "latest":
            wanted = limits.end
        case "offset":
            wanted = target.value
        case "time":
            wanted = limits.end if by_time is None else by_time
        case _:
            if old is None:
                return Move(at, old, None, limits, "it has no committed offset to shift")
            wanted = old + target.value
    return Move(at, old, min(max(wanted, limits.start), limits.end), limits)
