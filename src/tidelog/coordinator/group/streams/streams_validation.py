"""Checks a StreamsGroupHeartbeat: its form, whether the member is current, and whether the tasks that it reports exist."""

from __future__ import annotations

from tidelog.coordinator.group.streams.owned_tasks import is_part_of, read_tasks, roles
from tidelog.coordinator.group.streams.streams_group import JOIN_EPOCH, STATIC_LEAVE_EPOCH, StreamsMember
from tidelog.coordinator.group.streams.tasks import Tasks, task_ids
from tidelog.coordinator.group.streams.topology import ConfiguredTopology
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """KafkaError INVALID_REQUEST when the request is inconsistent in itself, or asks for what Kafka 4.3 does not have yet: static
    members, task offsets, warm-up tasks, patterns of topics; STREAMS_INVALID_TOPOLOGY for a changelog with a partition count."""
    _check_served(request)
    named = (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.rack_id, "RackId"),
    )
    for value, name in named:
        # Java's trim(): all characters up to the space are blank.
        if value is not None and all(char <= " " for char in value):
            raise _invalid(f"{name} can't be empty.")
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if request.member_epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("A joining member states its RebalanceTimeoutMs.")
        if any(lists):
            raise _invalid("A joining member has no tasks yet.")
        if request.topology is None:
            raise _invalid("A joining member sends its topology.")
        _check_changelogs(request.topology)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"MemberEpoch {request.member_epoch} is below {STATIC_LEAVE_EPOCH}.")
    if any(each is not None for each in lists) and any(each is None for each in lists):
        raise _invalid("Active, standby and warm-up tasks are reported together or not at all.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        raise _invalid("Only a joining member sends its topology.")


def _check_served(request: StreamsGroupHeartbeatRequest) -> None:
    refused = (
        (request.instance_id is not None, "Streams groups have no static members: remove group.instance.id."),
        (request.task_offsets is not None, "TaskOffsets cannot be sent to this version."),
        (request.task_end_offsets is not None, "TaskEndOffsets cannot be sent to this version."),
        (bool(request.warmup_tasks), "WarmupTasks cannot be sent to this version."),
    )
    for wrong, text in refused:
        if wrong:
            raise _invalid(text)
    if request.topology is not None and any(each.source_topic_regex for each in request.topology.subtopologies):
        raise _invalid("A topology of a streams group names its topics; patterns need the classic protocol.")


def _check_changelogs(topology: Topology) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                text = f"Changelog topic {topic.name} is sent with {topic.partitions} partitions; the broker decides how many."
                raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)


def read_reported(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that the member says it has; None when it says nothing."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return Tasks(read_tasks(request.active_tasks), read_tasks(request.standby_tasks), read_tasks(request.warmup_tasks))


def check_epoch(member: StreamsMember, epoch: int, reported: Tasks | None) -> None:
    """KafkaError FENCED_MEMBER_EPOCH unless the epoch is the member's, or 0 to join again, or the previous one from a member that
    missed a response and has only tasks that it was given."""
    if epoch in {JOIN_EPOCH, member.epoch}:
        return
    missed = epoch < member.epoch and epoch == member.previous_epoch
    if missed and reported is not None and is_part_of(reported, member.assigned.plain()):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member sent epoch {epoch}, and its epoch at the coordinator is {member.epoch}: "
        "it gives up its tasks and joins again.",
    )


def check_tasks(configured: ConfiguredTopology, reported: Tasks | None) -> None:
    """KafkaError INVALID_REQUEST for a reported task that the topology does not have."""
    for role in () if reported is None else roles(reported):
        for task in task_ids(role):
            if not configured.has_task(task):
                raise _invalid(f"The topology has no task {task.subtopology}_{task.partition}.")
