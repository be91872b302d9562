"""Records 10 to 15: what is written is what is read, and a tombstone takes it back."""

from __future__ import annotations

from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.share.share_group import ShareGroup, ShareMember, StatePartitions
from tidelog.coordinator.group.share.share_records import (
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    raises_epoch,
    read_share_key,
    removal_records,
    replay_tombstone,
    replay_value,
    state_partitions_record,
    target_epoch_record,
    target_record,
)

T = b"t" * 16
MEMBER = ShareMember("m", "rack", "c", "/h", ("t",), 3, 2, {T: frozenset({0, 2})})
STATES = StatePartitions({T: ("t", frozenset({1}))}, {T: ("t", frozenset({0, 2}))}, {b"u" * 16: "u"})


def replayed(group: ShareGroup, *records: GroupRecord) -> bool:
    """Whether the last record deletes the group."""
    ended = False
    for record in records:
        key = read_share_key(int.from_bytes(record.key[:2], "big"), record.key[2:])
        assert key is not None and key.group_id == "g"
        if record.value is None:
            ended = replay_tombstone(group, key)
        else:
            replay_value(group, key, record.value)
    return ended


def full() -> ShareGroup:
    group = ShareGroup("g")
    replayed(
        group,
        member_record("g", MEMBER),
        epoch_record("g", 4, 99),
        target_record("g", "m", MEMBER.assigned),
        target_epoch_record("g", 3, 1_000),
        current_record("g", MEMBER),
        state_partitions_record("g", STATES),
    )
    return group


def test_a_group_is_what_its_records_say() -> None:
    group = full()
    group.check()
    assert group.members == {"m": MEMBER}
    assert (group.epoch, group.metadata_hash, group.assignment_epoch, group.assignment_ms) == (4, 99, 3, 1_000)
    assert group.target == {"m": MEMBER.assigned}
    assert group.state_partitions == STATES


def test_a_member_and_a_group_are_deleted() -> None:
    group = full()
    assert not replayed(group, *removal_records("g", "m"))
    assert not group.members and not group.target
    assert replayed(group, *group_tombstones(group))
    assert group.state_partitions == StatePartitions() and group.assignment_epoch == 0


def test_a_member_without_assignment_is_neither_lost_nor_current() -> None:
    group = full()
    replayed(group, removal_records("g", "m")[0])
    assert (group.members["m"].epoch, group.members["m"].assigned) == (-1, {})


def test_keys_of_other_protocols_are_not_read() -> None:
    assert read_share_key(3, b"") is None


def test_epochs_are_those_that_apache_kafka_begins_with() -> None:
    """Apache Kafka 4.3.1 records epoch 2 when the first member joins."""
    assert ShareGroup("g").epoch == 1


def test_the_epoch_of_a_group_is_seen_among_its_records() -> None:
    assert raises_epoch([member_record("g", MEMBER), epoch_record("g", 4, 1)])
    assert not raises_epoch([member_record("g", MEMBER), target_epoch_record("g", 4, 5)])
    assert not raises_epoch(group_tombstones(full())), "a group that is deleted has none"
    assert not raises_epoch([])
