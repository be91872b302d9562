"""How far each reader read, and in which order: nothing skipped, nothing twice, nothing backwards.

A reader that goes from one offset of a partition to a later one has passed everything in between, which is known from
acknowledgements and from other readers. Readers of committed records may pass aborted records; but they wait before open
transactions, so that they never pass records that are committed later.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from tidelog.testing.checker.ledger import Ledger, Run, Write
from tidelog.testing.checker.verdict import Anomaly, Verdict


@dataclass(frozen=True, slots=True)
class Due:
    """The offsets of one partition that a reader must get when it passes them, in order, and the rank of each."""

    offsets: list[int]
    rank: dict[int, int]

    @classmethod
    def of(cls, offsets: set[int]) -> Due:
        ordered = sorted(offsets)
        return cls(ordered, {offset: rank for rank, offset in enumerate(ordered)})


def judge_order(ledger: Ledger, verdict: Verdict) -> set[str]:
    """Adds skipped and lost records and backward moves. Returns the values that some reader of committed records has passed."""
    writes = {(write.partition, place): write for write in ledger.writes.values() if (place := write.place) is not None}
    due = {True: _due(ledger, writes, committed_only=True), False: _due(ledger, writes, committed_only=False)}
    walk = _Walk(writes, verdict)
    for run in ledger.runs:
        if run.offsets or run.end is not None:
            walk.run(run, due[run.committed_only].get(run.partition) or Due.of(set()))
    _judge_sends(ledger, verdict)
    return walk.passed


def _due(ledger: Ledger, writes: dict[tuple[str, int], Write], *, committed_only: bool) -> dict[str, Due]:
    offsets: dict[str, set[int]] = {}
    for (partition, place), write in writes.items():
        if write.promised or not committed_only:
            offsets.setdefault(partition, set()).add(place)
    for run in ledger.runs:
        if run.offsets and (run.committed_only or not committed_only):
            offsets.setdefault(run.partition, set()).update(run.offsets)
    return {partition: Due.of(found) for partition, found in offsets.items()}


class _Walk:
    """Walks along the runs; each lost record is reported once."""

    def __init__(self, writes: dict[tuple[str, int], Write], verdict: Verdict) -> None:
        self.passed: set[str] = set()
        self._writes = writes
        self._verdict = verdict
        self._lost: set[tuple[str, int]] = set()

    def run(self, run: Run, due: Due) -> None:
        """One run from its start, or its first record, to its end."""
        known_start = run.start is not None
        last = -1 if run.start is None else run.start - 1
        expected = bisect_left(due.offsets, run.start) if run.start is not None else -1
        poll = -1
        for offset, number in zip(run.offsets, run.polls, strict=True):
            rank = due.rank[offset]
            if offset <= last and (known_start or poll >= 0):
                self._back(run, last, offset, within=number == poll)
            elif expected >= 0 and rank > expected:
                self._left_out(run, due.offsets[expected:rank], within=number == poll)
            last, expected, poll = offset, rank + 1, number
        if run.end is not None and expected >= 0:
            self._left_out(run, due.offsets[expected : bisect_left(due.offsets, run.end)], within=False)

    def _back(self, run: Run, last: int, offset: int, *, within: bool) -> None:
        anomaly = Anomaly.POLL_BACK_WITHIN if within else Anomaly.POLL_BACK
        self._verdict.add(anomaly, f"{run.process} read {run.partition}@{offset} after it was at {last}")

    def _left_out(self, run: Run, offsets: list[int], *, within: bool) -> None:
        for offset in offsets:
            write = self._writes.get((run.partition, offset))
            if write is not None and run.committed_only:
                self.passed.add(write.value)
            seen = write is None or (
                write.seen if run.committed_only and write.transaction is not None else write.read_at is not None
            )
            name = "a record" if write is None else write.value
            if seen:
                anomaly = Anomaly.SKIPPED_WITHIN if within else Anomaly.SKIPPED
                self._verdict.add(
                    anomaly, f"{run.process} passed {run.partition}@{offset} without {name}, which others read there"
                )
            elif (run.partition, offset) not in self._lost:
                self._lost.add((run.partition, offset))
                told = (
                    ""
                    if write is None or write.transaction is None
                    else f" of the committed transaction {write.transaction.name}"
                )
                self._verdict.add(
                    Anomaly.LOST_WRITE,
                    f"{run.process} passed {run.partition}@{offset}, where {name}{told} was acknowledged; no reader ever got it",
                )


def _judge_sends(ledger: Ledger, verdict: Verdict) -> None:
    """Records of one producer in one partition lie in the order in which they were sent."""
    latest: dict[tuple[str, str], Write] = {}
    for write in ledger.writes.values():
        place = write.place
        if place is None or not write.ordered:
            continue
        before = latest.get((write.process, write.partition))
        latest[write.process, write.partition] = write
        if before is None or before.place is None or before.place < place:
            continue
        together = write.transaction is not None and write.transaction is before.transaction
        verdict.add(
            Anomaly.SEND_BACK_WITHIN if together else Anomaly.SEND_BACK,
            f"{write.process} sent {before.value} to {write.partition}@{before.place}, then {write.value}, which is at {place}",
        )
