"""StreamsGroupDescribe: a streams group as administrators see it."""

from __future__ import annotations

from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.streams.streams_group import StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.tasks import Tasks, TaskSet
from tidelog.coordinator.group.streams.topology_record import described_topology
from tidelog.coordinator.partition_for_key import table_order
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.streams_group_describe import Assignment, DescribedGroup, Endpoint, KeyValue, Member, TaskIds


def describe_streams_group(c: Coordination, group_id: str) -> DescribedGroup:
    """Describes one group. GROUP_ID_NOT_FOUND for an unknown group and for one of another protocol."""
    group = c.of_class(group_id, StreamsGroup)
    if group is None:
        text = f"Group {group_id} not found." if group_id not in c.groups else f"Group {group_id} is of another protocol."
        return DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text, group_id=group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None if group.topology is None else described_topology(group.topology, group.configured),
        members=[_member(group, group.members[member_id]) for member_id in table_order(group.members)],
    )


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.endpoint is None else Endpoint(*member.endpoint),
        client_tags=[KeyValue(key, member.client_tags[key]) for key in sorted(member.client_tags)],
        assignment=_assignment(member.assigned.plain()),
        target_assignment=_assignment(group.target_of(member.member_id)),
    )


def _assignment(tasks: Tasks) -> Assignment:
    return Assignment(_task_ids(tasks.active), _task_ids(tasks.standby), _task_ids(tasks.warmup))


def _task_ids(tasks: TaskSet) -> list[TaskIds]:
    return [TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks)]
