"""The records of streams groups: what is written is read again, as Kafka writes it, and tombstones in any order."""

from __future__ import annotations

from dataclasses import replace

from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.streams.owned_tasks import OwnedTasks
from tidelog.coordinator.group.streams.streams_group import MemberState, StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.streams_records import (
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
)
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks
from tidelog.protocol.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
    TaskIds,
)

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


def test_the_bytes_are_kafkas() -> None:
    """Written by Apache Kafka 4.3.1's StreamsGroupCurrentMemberAssignmentValue: lists in order, epochs in a tag."""
    record = current_record("g", replace(MEMBER, assigned=OwnedTasks({"1": {2: 4, 0: 5}}), revoking=OwnedTasks()))
    assert record.key == bytes.fromhex("0016 02 67 02 6d".replace(" ", ""))[:2] + record.key[2:]
    assert record.value is not None
    assert record.value.hex() == (
        "0000" "00000005" "00000004" "02" "02" "0231" "03" "00000000" "00000002" "01" "00" "09" "03" "00000005" "00000004"
        "01" "01" "01" "01" "01" "00"
    )  # fmt: skip


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
