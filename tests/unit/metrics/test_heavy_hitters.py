"""The sketch beside exact counts."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tidelog.metrics.heavy_hitters import HeavyHitters

added = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1000)), max_size=400)


@given(added, st.integers(1, 12))
def test_no_key_is_counted_wrong_by_more_than_the_bound(items: list[tuple[int, int]], capacity: int) -> None:
    sketch: HeavyHitters[int] = HeavyHitters(capacity, 1)
    exact: Counter[int] = Counter()
    for key, weight in items:
        sketch.add(key, weight, (1,))
        exact[key] += weight
    assert sketch.total == sum(exact.values())
    found = {entry.key: entry for entry in sketch.entries()}
    assert len(found) == len(sketch) <= capacity
    assert sum(entry.weight for entry in found.values()) == sketch.total
    bound = sketch.total / capacity
    for key, weight in exact.items():
        entry = found.get(key)
        if entry is None:
            assert weight <= bound
        else:
            assert weight <= entry.weight <= weight + entry.error
            assert entry.error <= bound
            assert entry.amounts[0] <= sum(each == key for each, _ in items)


@given(added)
def test_it_is_exact_while_there_is_room(items: list[tuple[int, int]]) -> None:
    sketch: HeavyHitters[int] = HeavyHitters(31, 1)
    exact: Counter[int] = Counter()
    for key, weight in items:
        sketch.add(key, weight, (weight,))
        exact[key] += weight
    assert {entry.key: (entry.weight, entry.error, entry.amounts) for entry in sketch.entries()} == {
        key: (weight, 0, [weight]) for key, weight in exact.items()
    }


def test_entries_come_heaviest_first_and_a_newcomer_takes_the_place_of_the_lightest() -> None:
    sketch: HeavyHitters[str] = HeavyHitters(2)
    for key, weight in (("a", 5), ("b", 3), ("a", 1), ("c", 2)):
        sketch.add(key, weight)
    assert [(entry.key, entry.weight, entry.error) for entry in sketch.entries()] == [("a", 6, 0), ("c", 5, 3)]
