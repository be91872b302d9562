"""The simple assignor: every partition has a member, shares are even, and members keep what they have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordinator.group.share.simple_assignor import assign

T, U = b"t" * 16, b"u" * 16


def sizes(found: dict[str, object]) -> list[int]:
    return sorted(sum(len(each) for each in target.values()) for target in found.values())  # type: ignore[attr-defined]


@given(st.integers(1, 12), st.integers(1, 12))
def test_shares_are_even(members: int, partitions: int) -> None:
    names = {f"m{index}": frozenset({T}) for index in range(members)}
    found = assign(names, {}, {T: frozenset(range(partitions))})
    counts = [sum(partition in target.get(T, ()) for target in found.values()) for partition in range(partitions)]
    sharing = -(-members // partitions)
    assert all(1 <= count <= sharing for count in counts)
    assert sizes(found)[0] >= 1 or partitions < members or members > partitions
    assert sizes(found)[-1] - sizes(found)[0] <= 1
    if partitions >= members:
        assert set(counts) == {1}
    else:
        assert sizes(found)[0] >= 1


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 12))
def test_an_even_assignment_stays(before: int, after: int, partitions: int) -> None:
    assignable = {T: frozenset(range(partitions))}
    first = assign({f"m{index}": frozenset({T}) for index in range(before)}, {}, assignable)
    assert assign(dict.fromkeys(first, frozenset({T})), first, assignable) == first
    second = assign({f"m{index}": frozenset({T}) for index in range(after)}, first, assignable)
    assert sizes(second)[-1] - sizes(second)[0] <= 1


def test_members_get_only_topics_that_they_subscribe_to() -> None:
    both = {T: frozenset({0, 1}), U: frozenset({0})}
    found = assign({"a": frozenset({T}), "b": frozenset({T, U})}, {"a": {U: frozenset({0})}}, both)
    assert set(found["a"]) == {T}
    assert found["b"][U] == frozenset({0})
    assert found["a"][T] | found["b"][T] == {0, 1}
    assert assign({"a": frozenset({T})}, {}, {}) == {"a": {}}
    assert assign({}, {}, both) == {}
