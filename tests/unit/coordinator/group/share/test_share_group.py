"""StatePartitions: what is initialized, initializing and deleting."""

from __future__ import annotations

import pytest

from tidelog.coordinator.group.share.share_group import ShareGroup, StatePartitions
from tidelog.model.errors import ErrorCode, KafkaError

A, B = b"a" * 16, b"b" * 16


def named(**topics: set[int]) -> dict[bytes, tuple[str, frozenset[int]]]:
    return {name.encode() * 16: (name, frozenset(partitions)) for name, partitions in topics.items()}


def test_partitions_go_from_initializing_to_initialized_or_out() -> None:
    known = StatePartitions().begin(named(a={0, 1}, b={0}))
    known = known.settle(named(a={0}), {A: frozenset({1})})
    assert known == StatePartitions(named(b={0}), named(a={0}))
    assert known.known() == {A: frozenset({0}), B: frozenset({0})}


def test_topics_are_deleted_and_come_back() -> None:
    known = StatePartitions(named(b={0}), named(a={0})).delete([A, B, b"c" * 16])
    assert known == StatePartitions({}, {}, {A: "a", B: "b"})
    assert known.begin(named(a={3})) == StatePartitions(named(a={3}), {}, {B: "b"})
    assert known.without([A, B]) == StatePartitions()


def test_an_unknown_member_has_to_join() -> None:
    with pytest.raises(KafkaError) as refused:
        ShareGroup("g").member("m")
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
