"""Records of the consumer protocol: what Apache Kafka 4.3.1 wrote is read, and written again byte for byte."""

from __future__ import annotations

from pathlib import Path

from tests.unit.coordinator.group.consumer_driver import topic_id
from tidelog.coordinator.group.consumer import consumer_records as written
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember, MemberState
from tidelog.coordinator.group.consumer.consumer_records import (
    CURRENT,
    GROUP,
    MEMBER,
    PARTITION_METADATA,
    REGEX,
    TARGET,
    TARGET_MEMBER,
    ConsumerKey,
    read_consumer_key,
    replay_tombstone,
    replay_value,
)
from tidelog.coordinator.group.records import GroupRecord
from tidelog.records.batch import iter_headers
from tidelog.records.record import iter_records

GOLDEN = Path(__file__).parents[4] / "golden" / "groups" / "consumer-protocol.log"


def kafkas_records() -> list[tuple[ConsumerKey, GroupRecord]]:
    """Every record of the consumer protocol in a log of Kafka: members, patterns, static members, both migrations."""
    data = GOLDEN.read_bytes()
    found = []
    for header in iter_headers(data):
        for record in iter_records(data, header):
            raw = bytes(record.key or b"")
            key = read_consumer_key(int.from_bytes(raw[:2], "big"), raw[2:])
            if key is not None:
                found.append((key, GroupRecord(raw, None if record.value is None else bytes(record.value))))
    return found


def again(group: ConsumerGroup, key: ConsumerKey) -> GroupRecord:
    """The record that says what the group is now."""
    if key.type == GROUP:
        return written.epoch_record(key.group_id, group.epoch, group.metadata_hash)
    if key.type == MEMBER:
        return written.member_record(key.group_id, group.members[key.name])
    if key.type == TARGET:
        return written.target_epoch_record(key.group_id, group.assignment_epoch, group.assignment_timestamp_ms)
    if key.type == TARGET_MEMBER:
        return written.target_record(key.group_id, key.name, group.target[key.name])
    if key.type == CURRENT:
        return written.current_record(key.group_id, group.members[key.name])
    return written.regex_record(key.group_id, key.name, group.regexes[key.name])


def without_order(value: bytes) -> bytes:
    """Kafka writes topics in the order of a hash table."""
    return bytes(sorted(value))


def test_kafkas_records_are_read_and_written_again_as_kafka_wrote_them() -> None:
    groups: dict[str, ConsumerGroup] = {}
    seen = set()
    for key, record in kafkas_records():
        group = groups.setdefault(key.group_id, ConsumerGroup(key.group_id))
        seen.add(key.type if record.value is not None else -key.type)
        if record.value is None:
            if replay_tombstone(group, key):
                assert not group.members and not group.target, "the group's own tombstone comes last"
                del groups[key.group_id]
            continue
        replay_value(group, key, record.value)
        made = again(group, key)
        assert made.key == record.key
        assert made.value is not None and without_order(made.value) == without_order(record.value), key
    assert seen == {3, 5, 6, 7, 8, 16, -3, -4, -5, -6, -7, -8, -16}


def test_kafkas_tombstones_are_ours() -> None:
    for key, record in kafkas_records():
        if record.value is None:
            made = {
                GROUP: lambda k: written.epoch_tombstone(k.group_id),
                PARTITION_METADATA: lambda k: written.partition_metadata_tombstone(k.group_id),
                MEMBER: lambda k: written.member_tombstone(k.group_id, k.name),
                TARGET: lambda k: written.target_epoch_tombstone(k.group_id),
                TARGET_MEMBER: lambda k: written.target_tombstone(k.group_id, k.name),
                CURRENT: lambda k: written.current_tombstone(k.group_id, k.name),
                REGEX: lambda k: written.regex_tombstone(k.group_id, k.name),
            }[key.type](key)
            assert made == record


def test_partitions_without_epochs_of_their_own_have_the_members() -> None:
    group = ConsumerGroup("g")
    member = ConsumerMember("a", epoch=7, assigned={topic_id("t"): {1: 3}})
    key = ConsumerKey(CURRENT, "g", "a")
    value = written.current_record("g", member).value
    assert value is not None
    # Before Kafka 4.3 the tag with the epochs was not there.
    old = value.replace(bytes([1, 0, 5, 2, 0, 0, 0, 3]), b"\0")
    assert len(old) < len(value)
    replay_value(group, key, old)
    assert group.members["a"].assigned == {topic_id("t"): {1: 7}}


def test_a_record_of_before_4_1_is_remembered_until_it_is_taken_back() -> None:
    group = ConsumerGroup("g")
    replay_value(group, ConsumerKey(PARTITION_METADATA, "g"), b"\0\0")
    assert group.has_partition_metadata
    assert not replay_tombstone(group, ConsumerKey(PARTITION_METADATA, "g"))
    assert not group.has_partition_metadata


def test_tombstones_of_what_is_not_there_are_ignored() -> None:
    group = ConsumerGroup("g")
    for kind in (PARTITION_METADATA, MEMBER, TARGET_MEMBER, CURRENT, REGEX):
        assert not replay_tombstone(group, ConsumerKey(kind, "g", "nobody"))
    assert replay_tombstone(group, ConsumerKey(GROUP, "g"))


def test_a_current_assignments_tombstone_leaves_the_member_with_nothing() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", epoch=3, revoking={topic_id("t"): {0: 2}}, state=MemberState.UNREVOKED_PARTITIONS))
    replay_tombstone(group, ConsumerKey(CURRENT, "g", "a"))
    assert (group.members["a"].epoch, group.members["a"].revoking, group.owners) == (-1, {}, {})


def test_other_records_are_not_ours() -> None:
    assert read_consumer_key(2, b"\0\1g") is None
    assert read_consumer_key(11, b"\0\1g") is None
