"""The records of streams groups: what is written is read again, as Kafka writes it, and tombstones in any order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.streams.owned_tasks import OwnedTasks
from tidelog.coordinator.group.streams.streams_group import MemberState, StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.streams_records import (
    CURRENT,
    GROUP,
    TARGET,
    TARGET_MEMBER,
    TOPOLOGY,
    StreamsRecordKey,
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    read_streams_key,
    removal_records,
    replay_tombstone,
    replay_value,
    target_epoch_record,
    target_record,
    topology_record,
)
from tidelog.coordinator.group.streams.streams_records import MEMBER as MEMBER_METADATA
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks
from tidelog.protocol.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
    TaskIds,
)
from tidelog.records.batch import iter_headers
from tidelog.records.record import iter_records

GOLDEN = Path(__file__).parents[4] / "golden" / "groups" / "streams-protocol.log"
MEMBER = StreamsMember(
    "m",
    rack_id="r",
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=7,
    topology_epoch=3,
    process_id="p",
    endpoint=("host", 65_535),
    client_tags={"b": "2", "a": "1"},
    epoch=5,
    previous_epoch=4,
    state=MemberState.UNREVOKED_TASKS,
    assigned=OwnedTasks({"1": {2: 4, 0: 5}, "0": {1: 3}}, {"0": frozenset({3})}, {"0": frozenset({4})}),
    revoking=OwnedTasks({"0": {5: 2}}, {"1": frozenset({6})}, {"1": frozenset({7})}),
)


def replay(group: StreamsGroup, record: GroupRecord) -> bool:
    key = read_streams_key(int.from_bytes(record.key[:2], "big"), record.key[2:])
    assert key is not None
    assert key.group_id == "g"
    if record.value is None:
        return replay_tombstone(group, key)
    replay_value(group, key, record.value)
    return False


def test_records_are_read_as_they_were_written() -> None:
    group = StreamsGroup("g")
    target = Tasks({"1": frozenset({2, 0})}, {"0": frozenset({1})})
    for record in (
        member_record("g", MEMBER),
        current_record("g", MEMBER),
        target_record("g", "m", target),
        target_epoch_record("g", 6, 99),
        epoch_record("g", 7, -5, 3, {"num.standby.replicas": "1"}),
    ):
        replay(group, record)
    assert group.members == {"m": MEMBER}
    assert (group.target, group.assignment_epoch, group.assignment_ms) == ({"m": target}, 6, 99)
    assert (group.epoch, group.metadata_hash, group.validated_topology_epoch) == (7, -5, 3)
    assert group.assignment_configs == {"num.standby.replicas": "1"}


def kafkas_records() -> Iterator[tuple[StreamsRecordKey, GroupRecord]]:
    """Every record of a streams group in a log of Kafka: two processes of two threads join and leave, with standbys, then the
    group is deleted."""
    data = GOLDEN.read_bytes()
    for header in iter_headers(data):
        if not header.is_control:
            for record in iter_records(data, header):
                raw = bytes(record.key or b"")
                key = read_streams_key(int.from_bytes(raw[:2], "big"), raw[2:])
                if key is not None:
                    yield key, GroupRecord(raw, None if record.value is None else bytes(record.value))


def again(group: StreamsGroup, key: StreamsRecordKey) -> GroupRecord:
    """The record that says what the group is now."""
    if key.type == GROUP:
        return epoch_record(
            key.group_id, group.epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
        )
    if key.type == MEMBER_METADATA:
        return member_record(key.group_id, group.members[key.member_id])
    if key.type == TARGET:
        return target_epoch_record(key.group_id, group.assignment_epoch, group.assignment_ms)
    if key.type == TARGET_MEMBER:
        return target_record(key.group_id, key.member_id, group.target[key.member_id])
    if key.type == CURRENT:
        return current_record(key.group_id, group.members[key.member_id])
    assert group.topology is not None
    return topology_record(key.group_id, group.topology)


def test_kafkas_records_are_read_and_written_as_they_are() -> None:
    group = StreamsGroup("word-count")
    seen: set[int] = set()
    states: set[MemberState] = set()
    gone: list[tuple[int, str]] = []
    for key, record in kafkas_records():
        if record.value is None:
            replay_tombstone(group, key)
            gone.append((key.type, key.member_id))
            continue
        replay_value(group, key, record.value)
        assert again(group, key) == record, key
        seen.add(key.type)
        states |= {member.state for member in group.members.values()}
        if group.topology is not None:
            group.check()
    assert seen == {GROUP, MEMBER_METADATA, TARGET, TARGET_MEMBER, CURRENT, TOPOLOGY}
    assert states == {MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS}
    assert [kind for kind, _ in gone[-6:]] == [CURRENT, TARGET_MEMBER, MEMBER_METADATA, TARGET, GROUP, TOPOLOGY]
    assert (group.members, group.target, group.topology) == ({}, {}, None)


def test_the_record_of_a_member_comes_in_any_order_with_that_of_its_tasks() -> None:
    group = StreamsGroup("g")
    replay(group, current_record("g", MEMBER))
    assert group.holders.is_active(TaskId("0", 1))
    replay(group, member_record("g", MEMBER))
    assert group.members == {"m": MEMBER}
    assert group.holders.is_in_process(TaskId("1", 7), "p")


def test_tasks_without_epochs_count_from_the_members_epoch() -> None:
    value = StreamsGroupCurrentMemberAssignmentValue(4, 3, 1, [TaskIds("0", [1, 2]), TaskIds("1", [3], [2])], [], [])
    group = StreamsGroup("g")
    record = current_record("g", MEMBER)
    replay(group, GroupRecord(record.key, b"\0\0" + value.encode(0)))
    assert group.members["m"].assigned.active == {"0": {1: 4, 2: 4}, "1": {3: 2}}


def test_tombstones_remove_a_member_and_then_the_group() -> None:
    group = StreamsGroup("g")
    for record in (member_record("g", MEMBER), current_record("g", MEMBER), target_record("g", "m", Tasks())):
        replay(group, record)
    group.shutdown_member = "m"
    for record in removal_records("g", "m"):
        assert not replay(group, record)
    assert (group.members, group.target, group.shutdown_member) == ({}, {}, None)
    assert not group.holders.is_active(TaskId("0", 1))
    assert [replay(group, record) for record in group_tombstones(group)] == [False, True, False]
    for record in removal_records("g", "unknown"):
        assert not replay(group, record)


def test_keys_of_other_protocols_are_not_read() -> None:
    assert read_streams_key(18, b"") is None
    assert read_streams_key(3, b"") is None
