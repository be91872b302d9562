"""Which offsets a batch has: limits that are kept, losses that are named, texts that stay the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.spark.planning import OffsetRange, SourceOffset, limited, next_ranges, split, unseen

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_an_offset_is_the_connectors_json_with_ids_and_always_the_same_text() -> None:
    one = SourceOffset({B0: 3, A1: 2, A0: 1}, {"b": "B", "a": "A"})
    other = SourceOffset({A0: 1, A1: 2, B0: 3}, {"a": "A", "b": "B"})
    expected = '{"@ids": {"a": "A", "b": "B"}, "a": {"0": 1, "1": 2}, "b": {"0": 3}}'
    assert json.dumps(one.to_json()) == json.dumps(other.to_json()) == expected
    assert SourceOffset.from_json(json.loads(expected)) == one


def test_an_offset_that_the_connector_wrote_is_read() -> None:
    assert SourceOffset.from_json({"a": {"0": 7}}) == SourceOffset({A0: 7})


@pytest.mark.parametrize("said", [{"offset": 5}, {"a": {"x": 1}}, {"a": {"0": None}}])
def test_an_offset_of_another_source_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="a checkpoint location of its own"):
        SourceOffset.from_json(said)


def test_a_batch_is_what_lies_between_two_offsets() -> None:
    ranges, loss = next_ranges(SourceOffset({A0: 5, A1: 9}), SourceOffset({A0: 8, A1: 9}), {})
    assert (ranges, loss.sentences) == ((OffsetRange(A0, 5, 8),), ())


def test_a_new_partition_is_read_from_its_beginning_and_what_is_gone_of_it_is_named() -> None:
    start, end = SourceOffset({A0: 5}), SourceOffset({A0: 5, A1: 8, B0: 2})
    assert unseen(start, end) == {A1, B0}
    ranges, loss = next_ranges(start, end, {A1: 3, B0: 0})
    assert ranges == (OffsetRange(A1, 3, 8), OffsetRange(B0, 0, 2))
    assert len(loss.sentences) == 1
    assert "a-1 is new to this query, and its offsets before 3" in loss.sentences[0]


def test_a_topic_that_was_made_again_is_read_from_its_beginning_and_told() -> None:
    start, end = SourceOffset({A0: 5}, {"a": "OLD"}), SourceOffset({A0: 9}, {"a": "NEW"})
    ranges, loss = next_ranges(start, end, {A0: 0})
    assert ranges == (OffsetRange(A0, 0, 9),)
    assert "its id was OLD and is NEW" in loss.sentences[0]


def test_a_checkpoint_without_ids_says_nothing_about_them() -> None:
    assert next_ranges(SourceOffset({A0: 5}), SourceOffset({A0: 9}, {"a": "NEW"}), {})[1].sentences == ()


def test_partitions_and_ends_that_are_gone_are_told() -> None:
    _, loss = next_ranges(SourceOffset({A0: 5, A1: 7}), SourceOffset({A0: 3}), {})
    assert "a-1 is not there any more; it was read up to offset 7" in loss.sentences[0]
    assert "a-0 ends at offset 3, and was read up to 5 before" in loss.sentences[1]


def test_shares_are_in_proportion_and_nobody_starves() -> None:
    ends = limited({A0: (0, 900), A1: (100, 200), B0: (5, 5)}, 100)
    assert ends == {A0: 89, A1: 111, B0: 5}
    assert limited({A0: (0, 10**9), A1: (0, 1)}, 10) == {A0: 9, A1: 1}


RANGES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 4)),
    st.tuples(st.integers(0, 50), st.integers(0, 200)),
    max_size=8,
)


@given(RANGES, st.integers(1, 300))
def test_a_limit_is_used_up_and_never_passed(available: dict[TopicPartition, tuple[int, int]], most: int) -> None:
    ends = limited(available, most)
    taken = {at: end - available[at][0] for at, end in ends.items()}
    waiting = {at: max(0, end - start) for at, (start, end) in available.items()}
    assert ends.keys() == available.keys()
    assert all(0 <= taken[at] <= waiting[at] for at in available)
    assert sum(taken.values()) == min(most, sum(waiting.values()))


COUNTS = st.none() | st.integers(1, 40)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 500)), max_size=6), COUNTS, COUNTS)
def test_pieces_are_the_whole(sizes: list[tuple[int, int]], least: int | None, most: int | None) -> None:
    ranges = tuple(OffsetRange(TopicPartition("t", i), start, start + size) for i, (start, size) in enumerate(sizes))
    pieces = split(ranges, least, most)
    for whole in ranges:
        mine = [piece for piece in pieces if piece.at == whole.at]
        assert [mine[0].start, *(piece.end for piece in mine)] == [*(piece.start for piece in mine), whole.end]
        assert all(piece.size > 0 for piece in mine)
        assert most is None or all(piece.size <= most for piece in mine)
    if least is not None and len(ranges) == 1:
        assert len(pieces) >= min(least, ranges[0].size)
