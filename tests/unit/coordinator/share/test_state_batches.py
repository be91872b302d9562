"""Merging state batches, compared with a model that has one entry for each offset."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordinator.share.state_batches import merged
from tidelog.replication.share.record_state import RecordState, StateBatch

AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


def test_the_higher_count_wins_then_the_higher_state() -> None:
    stored = [StateBatch(0, 9, AVAILABLE, 2)]
    assert merged(stored, [StateBatch(0, 9, ACKNOWLEDGED, 1)], 0) == stored
    assert merged(stored, [StateBatch(0, 9, ACKNOWLEDGED, 2)], 0) == [StateBatch(0, 9, ACKNOWLEDGED, 2)]
    assert merged(stored, [StateBatch(3, 5, AVAILABLE, 3)], 0) == [
        StateBatch(0, 2, AVAILABLE, 2),
        StateBatch(3, 5, AVAILABLE, 3),
        StateBatch(6, 9, AVAILABLE, 2),
    ]


def test_equal_neighbours_are_joined_and_what_lies_below_the_start_is_cut() -> None:
    stored = [StateBatch(0, 9, ACKNOWLEDGED, 1)]
    assert merged(stored, [StateBatch(10, 19, ACKNOWLEDGED, 1)], 5) == [StateBatch(5, 19, ACKNOWLEDGED, 1)]
    assert merged(stored, [], 10) == []
    assert merged(stored, [], -1) == stored


ranges = st.tuples(st.integers(0, 30), st.integers(0, 8), st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]), st.integers(1, 3))


@given(st.lists(st.lists(ranges, max_size=4), max_size=6), st.integers(-1, 20))
def test_many_writes_leave_the_winner_of_each_offset(writes: list[list[tuple[int, int, RecordState, int]]], start: int) -> None:
    stored: list[StateBatch] = []
    expected: dict[int, tuple[int, RecordState]] = {}
    for write in writes:
        batches = [StateBatch(first, first + more, state, count) for first, more, state, count in write]
        stored = merged(stored, batches, start)
        for batch in batches:
            for offset in range(max(batch.first, start), batch.last + 1):
                won = (batch.delivery_count, batch.state)
                expected[offset] = max(won, expected.get(offset, won))
    found = {offset: (one.delivery_count, one.state) for one in stored for offset in range(one.first, one.last + 1)}
    assert found == expected
    assert all(one.last < other.first for one, other in pairwise(stored))
    assert not any(one.last + 1 == other.first and one[2:] == other[2:] for one, other in pairwise(stored))
