"""Checkpoint and tables beside each other: every way in which one of them can be missing, old, or of another pipeline."""

from __future__ import annotations

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.recovery import Resume, Seen, decide
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange

RANGES = (OffsetRange("t", "id", 0, 5, 9), OffsetRange("t", "id", 1, 3, 3))
NOTHING = Seen("cp", -1, -1)
ALWAYS = frozenset({"a", "b"})


def at(sink: str, batch: int, ranges: tuple[OffsetRange, ...] = RANGES) -> BatchIdentity:
    return BatchIdentity("p", sink, batch, ranges)


def test_with_nothing_anywhere_it_begins_where_the_source_says() -> None:
    assert decide(NOTHING, {"a": None}, ALWAYS, remembers=False) == Resume(None, 0)


def test_a_lost_checkpoint_goes_on_from_the_newest_table_and_writes_its_batch_again() -> None:
    resume = decide(NOTHING, {"a": at("a", 8), "b": at("b", 7), "dead": at("dead", 2)}, ALWAYS, remembers=False)
    assert resume.first_batch == 9 and resume.again == at("a", 8)
    whole = decide(NOTHING, {"a": at("a", 8), "b": at("b", 8), "dead": None}, ALWAYS, remembers=False)
    assert whole.first_batch == 9 and whole.again is None
    assert resume.begin is not None
    assert resume.begin.positions == {TopicPartition("t", 0): 9, TopicPartition("t", 1): 3}
    assert resume.begin.ids == {"t": "id"}


def test_a_lost_checkpoint_of_a_query_that_remembers_is_refused() -> None:
    with pytest.raises(PipelineFailure, match="restore it, or give the sink a new path"):
        decide(NOTHING, {"a": at("a", 8)}, ALWAYS, remembers=True)


def test_a_table_that_lacks_batches_is_refused_unless_the_user_accepts_that() -> None:
    for seen in (NOTHING, Seen("cp", 8, 8, RANGES)):
        for behind in (None, at("b", 6)):
            tables = {"a": at("a", 8), "b": behind}
            with pytest.raises(PipelineFailure, match="--from-here b"):
                decide(seen, tables, ALWAYS, remembers=False)
            decide(seen, tables, ALWAYS, remembers=False, from_here=frozenset({"b"}))


def test_a_crash_between_two_sinks_is_no_reason_to_stop() -> None:
    assert decide(Seen("cp", 8, 7, RANGES), {"a": at("a", 8), "b": at("b", 7)}, ALWAYS, remembers=False) == Resume(None, 0)


def test_a_checkpoint_that_is_older_than_its_table_is_refused() -> None:
    with pytest.raises(PipelineFailure, match="an old copy, or two pipelines"):
        decide(Seen("cp", 7, 7, RANGES), {"a": at("a", 8)}, frozenset({"a"}), remembers=False)


def test_the_same_number_with_other_offsets_is_refused() -> None:
    with pytest.raises(PipelineFailure, match="other offsets"):
        decide(Seen("cp", 8, 7, RANGES[:1]), {"a": at("a", 8)}, frozenset({"a"}), remembers=False)
