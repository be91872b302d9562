"""Whether a batch may still be written: by its number and its offsets, whatever a checkpoint says."""

from __future__ import annotations

import json

import pytest

from tidelog.pipeline.lake.landed import Progress, Verdict, judge, missing, starting_offsets
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError


def batch(number: int, *ranges: tuple[int, int, int], topic_id: str = "one") -> BatchIdentity:
    """Ranges are (partition, start, end)."""
    return BatchIdentity("p", "s", number, tuple(OffsetRange("t", topic_id, *span) for span in ranges))


def test_batches_that_follow_each_other_are_new_and_come_again_as_landed() -> None:
    progress = Progress()
    batches = [batch(0, (0, 5, 10), (1, 0, 3)), batch(1, (0, 10, 12)), batch(2, (0, 12, 20), (1, 3, 4))]
    for following in batches:
        assert judge(progress, following) is Verdict.NEW
        progress = progress.after(following)
        assert [judge(progress, one) for one in batches[: batches.index(following) + 1]] == [Verdict.LANDED] * (
            batches.index(following) + 1
        )
    assert progress.positions == {("t", "one", 0): (5, 20), ("t", "one", 1): (0, 4)}


def test_the_same_number_with_other_offsets_is_another_driver() -> None:
    progress = Progress().after(batch(3, (0, 0, 10)))
    with pytest.raises(
        SinkError, match=r"Batch 3 of tidelog:p:s brings t-0 0 to 8.*at batch 3 with t-0 0 to 9.*Nothing was written"
    ):
        judge(progress, batch(3, (0, 0, 9)))


def test_a_store_that_forgets_the_last_identity_goes_by_offsets() -> None:
    progress = Progress(3, None, {("t", "one", 0): (2, 10)})
    assert judge(progress, batch(3, (0, 4, 10))) is Verdict.LANDED
    for other in (batch(3, (0, 4, 11)), batch(3, (0, 1, 10)), batch(2, (1, 0, 5))):
        with pytest.raises(SinkError):
            judge(progress, other)


def test_an_old_batch_that_is_not_wholly_there_is_an_error_and_never_skipped() -> None:
    progress = Progress().after(batch(7, (0, 100, 200)))
    with pytest.raises(SinkError, match="t-0 100 to 199"):
        judge(progress, batch(0, (0, 0, 50)))  # a new checkpoint that begins before the table does


def test_a_new_number_that_brings_offsets_again_is_told_where_to_go_on() -> None:
    progress = Progress().after(batch(0, (0, 0, 10), (1, 0, 5)))
    with pytest.raises(SinkError) as told:
        judge(progress, batch(1, (0, 0, 30)))
    assert 'startingOffsets={"t": {"0": 10, "1": 5}}' in str(told.value)
    assert starting_offsets(progress) == '{"t": {"0": 10, "1": 5}}'


def test_a_topic_that_was_made_again_is_another_one() -> None:
    progress = Progress().after(batch(0, (0, 0, 10)))
    assert judge(progress, batch(1, (0, 0, 10), topic_id="two")) is Verdict.NEW


def test_a_hole_is_named() -> None:
    progress = Progress().after(batch(0, (0, 0, 10)))
    assert missing(progress, batch(1, (0, 10, 12), (1, 5, 6))) == []
    assert missing(progress, batch(1, (0, 12, 14))) == ["t-0: offsets 10 to 11"]
    assert judge(progress, batch(1, (0, 12, 14))) is Verdict.NEW


def test_progress_comes_back_from_its_text() -> None:
    progress = Progress().after(batch(4, (0, 0, 10), (3, 7, 9)))
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress
    assert Progress.from_json(Progress().to_json()) == Progress()
    with pytest.raises(SinkError, match="cannot be read"):
        Progress.from_json({"batch_id": 1})
