"""The index finds what a search through all ACLs finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.model.acl import AccessControlEntry
from tidelog.model.ids import Uuid
from tidelog.security.acl_index import AclIndex

NAMES = st.sampled_from(["a", "ab", "abc", "b", "*", "abcd", "é"])
ENTRIES = st.builds(
    AccessControlEntry,
    st.sampled_from([2, 3]),
    NAMES,
    st.sampled_from([3, 4]),
    st.sampled_from(["User:a", "User:*"]),
    st.just("*"),
    st.just(3),
    st.just(3),
)


def identity(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


@given(st.lists(ENTRIES, max_size=12), st.sets(st.integers(0, 11)), st.sampled_from([2, 3]), NAMES)
def test_a_lookup_finds_exactly_the_acls_that_cover_the_name(
    entries: list[AccessControlEntry], removed: set[int], resource_type: int, name: str
) -> None:
    index = AclIndex({identity(number): entry for number, entry in enumerate(entries)})
    left = []
    for number, entry in enumerate(entries):
        if number in removed:
            index.remove(identity(number))
        else:
            left.append(entry)
    expected = [each for each in left if each.resource_type == resource_type and each.covers(name)]
    groups = list(index.covering(resource_type, name))
    found = [(principal, each) for group in groups for principal, of_it in group.items() for each in of_it.values()]
    assert sorted(repr(each) for _, each in found) == sorted(map(repr, expected))
    assert all(principal == each.principal for principal, each in found)
    assert all(of_it for group in groups for of_it in group.values())
    assert all(groups)
    assert len(index) == len(left)
    assert sorted(map(repr, index.of_type(resource_type))) == sorted(
        repr(each) for each in left if each.resource_type == resource_type
    )


def test_an_id_is_added_and_removed_once() -> None:
    entry = AccessControlEntry(2, "t", 3, "User:a", "*", 3, 3)
    index = AclIndex({identity(1): entry})
    with pytest.raises(AssertionError, match="is there already"):
        index.add(identity(1), entry)
    index.remove(identity(1))
    assert identity(1) not in index
    with pytest.raises(KeyError):
        index.remove(identity(1))
