from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.dead_letters.samples import letter
from tidelog.dead_letters.journal import Journal, Replayed
from tidelog.dead_letters.planning import Outcome, Plan, Replay, Target
from tidelog.dead_letters.replaying import BATCH, BATCH_BYTES, TRIES, Pace, Replaying
from tidelog.dead_letters.transactions import Aborted, Refused, ReplayFailed

ID = b"i" * 16


class Memory:
    """A writer that refuses some values, and aborts so many times."""

    def __init__(self, refuses: Sequence[bytes] = (), aborts: int = 0) -> None:
        self.batches: list[list[bytes | None]] = []
        self._refuses = refuses
        self._aborts = aborts

    def write(self, batch: Sequence[Replay]) -> list[Replayed]:
        if self._aborts:
            self._aborts -= 1
            raise Aborted("the coordinator moved")
        if any(each.value in self._refuses for each in batch):
            raise Refused("too large")
        self.batches.append([each.value for each in batch])
        return [Replayed(each.source, each.topic_id, each.replays, each.partition, 100, 0) for each in batch]


def letters(*values: bytes) -> list[object]:
    return [letter(index, source=("jobs", 0, index), value=value) for index, value in enumerate(values)]


def run(writer: Memory | None, found: list[object], pace: Pace | None = None, journal: Journal | None = None) -> Replaying:
    journal = Journal() if journal is None else journal
    plan = Plan("dlq", {"jobs": Target(ID, 1)}.get, journal, 3)
    replaying = Replaying(plan, lambda each: None, journal, writer, pace or Pace(None))
    replaying.run(found)  # type: ignore[arg-type]
    return replaying


def test_letters_are_written_in_batches_and_the_journal_knows_them() -> None:
    writer, journal = Memory(), Journal()
    found = letters(*[b"v"] * (BATCH + 1))
    assert run(writer, found, journal=journal).replayed == {("workers", "jobs", 0): BATCH + 1}
    assert [len(batch) for batch in writer.batches] == [BATCH, 1]
    again = run(writer, found, journal=journal)
    assert (again.replayed, again.left) == ({}, {Outcome.DONE: BATCH + 1})
    assert len(writer.batches) == 2


def test_large_records_make_small_batches() -> None:
    writer = Memory()
    run(writer, letters(*[b"v" * (BATCH_BYTES // 2)] * 3))
    assert [len(batch) for batch in writer.batches] == [1, 1, 1], "the key counts"


def test_a_preview_counts_and_writes_nothing() -> None:
    found = run(None, letters(b"a", b"b"))
    assert found.replayed == {("workers", "jobs", 0): 2}
    assert run(None, letters(b"a", b"b")).replayed == found.replayed


def test_a_record_that_is_refused_does_not_hold_up_the_others() -> None:
    writer = Memory(refuses=[b"b"])
    found = run(writer, letters(b"a", b"b", b"c"))
    assert writer.batches == [[b"a"], [b"c"]]
    assert (found.replayed.total(), found.left[Outcome.REFUSED]) == (2, 1)
    assert [(each.offset, why) for each, why in found.refusals] == [(1, "too large")]


def test_an_aborted_transaction_is_tried_again() -> None:
    writer = Memory(aborts=TRIES - 1)
    assert run(writer, letters(b"a", b"b")).replayed.total() == 2
    assert writer.batches == [[b"a", b"b"]]
    with pytest.raises(ReplayFailed, match="Run it again"):
        run(Memory(aborts=TRIES), letters(b"a"))


def test_a_rate_makes_pauses() -> None:
    clock, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    writer = Memory()
    run(writer, letters(*[b"v"] * 25), Pace(10, lambda: clock[0], sleep))
    assert [len(batch) for batch in writer.batches] == [10, 10, 5]
    assert slept == [1.0, 1.0]


def test_a_slow_rate_sends_one_at_a_time() -> None:
    assert Pace(0.5).batch == 1
