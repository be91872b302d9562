"""The records of ``__consumer_offsets`` that streams groups write and read: types 17 and 19 to 23.

This module decides what each record does to a group. Lists are in the order in which Kafka writes them: subtopologies and client
tags by name, partitions by number. Source: Kafka's StreamsGroup*Key/Value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.streams.owned_tasks import NOTHING_OWNED, OwnedTasks, TaskEpochs, read_tasks, roles
from tidelog.coordinator.group.streams.streams_group import NO_EPOCH, MemberState, StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.tasks import Tasks, TaskSet
from tidelog.protocol.messages import streams_group_current_member_assignment_value as current
from tidelog.protocol.messages import streams_group_target_assignment_member_value as targeted
from tidelog.protocol.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey
from tidelog.protocol.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from tidelog.protocol.messages.streams_group_member_metadata_value import Endpoint, KeyValue, StreamsGroupMemberMetadataValue
from tidelog.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from tidelog.protocol.messages.streams_group_metadata_value import LastAssignmentConfig, StreamsGroupMetadataValue
from tidelog.protocol.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from tidelog.protocol.messages.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey
from tidelog.protocol.messages.streams_group_target_assignment_metadata_value import StreamsGroupTargetAssignmentMetadataValue
from tidelog.protocol.messages.streams_group_topology_key import StreamsGroupTopologyKey
from tidelog.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue

GROUP, MEMBER, TARGET, TARGET_MEMBER, CURRENT, TOPOLOGY = 17, 19, 20, 21, 22, 23
_INT16 = struct.Struct(">h")
_VERSION = _INT16.pack(0)


@dataclass(frozen=True, slots=True)
class StreamsRecordKey:
    """The group of a record, and its member (empty for a record of the group itself)."""

    type: int
    group_id: str
    member_id: str = ""


def read_streams_key(kind: int, body: bytes) -> StreamsRecordKey | None:
    """Reads the key after its type. None for a key of another protocol; ProtocolViolation when it is malformed."""
    read = _KEYS.get(kind)
    return None if read is None else StreamsRecordKey(kind, *read(body))


_KEYS: dict[int, Callable[[bytes], tuple[str, ...]]] = {
    GROUP: lambda body: (StreamsGroupMetadataKey.decode(body, 0).group_id,),
    MEMBER: lambda body: _of_member(StreamsGroupMemberMetadataKey.decode(body, 0)),
    TARGET: lambda body: (StreamsGroupTargetAssignmentMetadataKey.decode(body, 0).group_id,),
    TARGET_MEMBER: lambda body: _of_member(StreamsGroupTargetAssignmentMemberKey.decode(body, 0)),
    CURRENT: lambda body: _of_member(StreamsGroupCurrentMemberAssignmentKey.decode(body, 0)),
    TOPOLOGY: lambda body: (StreamsGroupTopologyKey.decode(body, 0).group_id,),
}


def _of_member(
    key: StreamsGroupMemberMetadataKey | StreamsGroupTargetAssignmentMemberKey | StreamsGroupCurrentMemberAssignmentKey,
) -> tuple[str, str]:
    return key.group_id, key.member_id


# -- written -------------------------------------------------------------------------------------------------------------


def _record(kind: int, key: bytes, value: bytes | None) -> GroupRecord:
    return GroupRecord(_INT16.pack(kind) + key, None if value is None else _VERSION + value)


def _member_key(group_id: str, member_id: str) -> bytes:
    return StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id).encode(0)


def _target_key(group_id: str, member_id: str) -> bytes:
    return StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id).encode(0)


def _current_key(group_id: str, member_id: str) -> bytes:
    return StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id).encode(0)


def member_record(group_id: str, member: StreamsMember) -> GroupRecord:
    """The member's metadata."""
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.endpoint is None else Endpoint(*member.endpoint),
        client_tags=[KeyValue(key, member.client_tags[key]) for key in sorted(member.client_tags)],
    )
    return _record(MEMBER, _member_key(group_id, member.member_id), value.encode(0))


def epoch_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> GroupRecord:
    """The group's epoch, with the topics, the topology and the settings that it stands for."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[LastAssignmentConfig(key, configs[key]) for key in sorted(configs)],
    )
    return _record(GROUP, StreamsGroupMetadataKey(group_id=group_id).encode(0), value.encode(0))


def target_epoch_record(group_id: str, epoch: int, now_ms: int) -> GroupRecord:
    """The epoch of the target, and when it was computed."""
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return _record(TARGET, StreamsGroupTargetAssignmentMetadataKey(group_id=group_id).encode(0), value.encode(0))


def target_record(group_id: str, member_id: str, tasks: Tasks) -> GroupRecord:
    """The target of one member."""
    lists = ([targeted.TaskIds(each, sorted(role[each])) for each in sorted(role)] for role in roles(tasks))
    value = targeted.StreamsGroupTargetAssignmentMemberValue(*lists)
    return _record(TARGET_MEMBER, _target_key(group_id, member_id), value.encode(0))


def current_record(group_id: str, member: StreamsMember) -> GroupRecord:
    """The member's epochs, state and tasks."""
    value = current.StreamsGroupCurrentMemberAssignmentValue(
        member.epoch,
        member.previous_epoch,
        member.state,
        _with_epochs(member.assigned.active),
        _without_epochs(member.assigned.standby),
        _without_epochs(member.assigned.warmup),
        _with_epochs(member.revoking.active),
        _without_epochs(member.revoking.standby),
        _without_epochs(member.revoking.warmup),
    )
    return _record(CURRENT, _current_key(group_id, member.member_id), value.encode(0))


def _with_epochs(tasks: TaskEpochs) -> list[current.TaskIds]:
    return [
        current.TaskIds(each, sorted(tasks[each]), [tasks[each][partition] for partition in sorted(tasks[each])])
        for each in sorted(tasks)
    ]


def _without_epochs(tasks: TaskSet) -> list[current.TaskIds]:
    return [current.TaskIds(each, sorted(tasks[each])) for each in sorted(tasks)]


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> GroupRecord:
    """The topology as the first member sent it."""
    return _record(TOPOLOGY, StreamsGroupTopologyKey(group_id=group_id).encode(0), topology.encode(0))


def removal_records(group_id: str, member_id: str) -> list[GroupRecord]:
    """Deletes the member."""
    return [
        _record(CURRENT, _current_key(group_id, member_id), None),
        _record(TARGET_MEMBER, _target_key(group_id, member_id), None),
        _record(MEMBER, _member_key(group_id, member_id), None),
    ]


def group_tombstones(group: StreamsGroup) -> list[GroupRecord]:
    """Deletes a group without members."""
    return [
        _record(TARGET, StreamsGroupTargetAssignmentMetadataKey(group_id=group.group_id).encode(0), None),
        _record(GROUP, StreamsGroupMetadataKey(group_id=group.group_id).encode(0), None),
        _record(TOPOLOGY, StreamsGroupTopologyKey(group_id=group.group_id).encode(0), None),
    ]


# -- read ----------------------------------------------------------------------------------------------------------------


def replay_value(group: StreamsGroup, key: StreamsRecordKey, raw: bytes) -> None:
    """Applies a record with a value."""
    body = raw[2:]
    member = group.members.get(key.member_id, StreamsMember(key.member_id))
    if key.type == MEMBER:
        group.update_member(_read_member(member, StreamsGroupMemberMetadataValue.decode(body, 0)))
    elif key.type == GROUP:
        metadata = StreamsGroupMetadataValue.decode(body, 0)
        group.epoch, group.metadata_hash = metadata.epoch, metadata.metadata_hash
        group.validated_topology_epoch = metadata.validated_topology_epoch
        group.assignment_configs = {each.key: each.value for each in metadata.last_assignment_configs or ()}
    elif key.type == TARGET:
        target = StreamsGroupTargetAssignmentMetadataValue.decode(body, 0)
        group.assignment_epoch, group.assignment_ms = target.assignment_epoch, target.assignment_timestamp
    elif key.type == TARGET_MEMBER:
        read = targeted.StreamsGroupTargetAssignmentMemberValue.decode(body, 0)
        group.target[key.member_id] = Tasks(
            read_tasks(read.active_tasks), read_tasks(read.standby_tasks), read_tasks(read.warmup_tasks)
        )
    elif key.type == CURRENT:
        group.update_member(_read_current(member, current.StreamsGroupCurrentMemberAssignmentValue.decode(body, 0)))
    else:
        group.set_topology(StreamsGroupTopologyValue.decode(body, 0))


def _read_member(member: StreamsMember, read: StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = read.user_endpoint
    return replace(
        member,
        instance_id=read.instance_id,
        rack_id=read.rack_id,
        client_id=read.client_id,
        client_host=read.client_host,
        rebalance_timeout_ms=read.rebalance_timeout_ms,
        topology_epoch=read.topology_epoch,
        process_id=read.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags={each.key: each.value for each in read.client_tags},
    )


def _read_current(member: StreamsMember, read: current.StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
    return replace(
        member,
        epoch=read.member_epoch,
        previous_epoch=read.previous_member_epoch,
        state=MemberState.read(read.state),
        assigned=OwnedTasks(
            _read_epochs(read.active_tasks, read.member_epoch), read_tasks(read.standby_tasks), read_tasks(read.warmup_tasks)
        ),
        revoking=OwnedTasks(
            _read_epochs(read.active_tasks_pending_revocation, read.member_epoch),
            read_tasks(read.standby_tasks_pending_revocation),
            read_tasks(read.warmup_tasks_pending_revocation),
        ),
    )


def _read_epochs(tasks: list[current.TaskIds], member_epoch: int) -> TaskEpochs:
    """Tasks without epochs were written before those were: they count as given in the member's epoch."""
    found = {}
    for each in tasks:
        epochs = each.assignment_epochs or []
        if len(epochs) != len(each.partitions):
            epochs = [member_epoch] * len(each.partitions)
        found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def replay_tombstone(group: StreamsGroup, key: StreamsRecordKey) -> bool:
    """Applies a tombstone. True when it deletes the group itself."""
    if key.type == GROUP:
        return True
    if key.type == MEMBER:
        group.remove_member(key.member_id)
        group.deadlines.forget(key.member_id)
    elif key.type == TARGET:
        group.assignment_epoch, group.assignment_ms = NO_EPOCH, 0
    elif key.type == TARGET_MEMBER:
        group.target.pop(key.member_id, None)
    elif key.type == CURRENT:
        member = group.members.get(key.member_id)
        if member is not None:
            group.update_member(
                replace(member, epoch=NO_EPOCH, previous_epoch=NO_EPOCH, assigned=NOTHING_OWNED, revoking=NOTHING_OWNED)
            )
    else:
        group.set_topology(None)
    return False
