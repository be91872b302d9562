"""Streams groups (KIP-1071): members, their tasks, the topology. Their offsets are those of ``client.admin.groups``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidelog.client.admin.group_results import StreamsGroup, StreamsMember, StreamsSubtopology, StreamsTasks
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Coordinator, Partition
from tidelog.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest

NO_TOPOLOGY = -1


def describe(group_id: str) -> Call[StreamsGroup]:
    """A streams group with members and topology. KafkaError (GROUP_ID_NOT_FOUND) if there is none with this name."""
    request = StreamsGroupDescribeRequest(group_ids=[group_id])
    response = yield Ask(request, Coordinator(group_id), code_of=lambda answer: int(answer.groups[0].error_code))
    (found,) = response.groups
    check(found.error_code, found.error_message)
    return StreamsGroup(
        found.group_id,
        found.group_state,
        tuple(map(_member, found.members)),
        found.group_epoch,
        found.assignment_epoch,
        NO_TOPOLOGY if found.topology is None else found.topology.epoch,
        tuple(map(_subtopology, (found.topology.subtopologies or ()) if found.topology is not None else ())),
    )


def _member(member: Any) -> StreamsMember:
    return StreamsMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.process_id,
        member.member_epoch,
        member.topology_epoch,
        _tasks(member.assignment),
        _tasks(member.target_assignment),
        member.is_classic,
    )


def _tasks(assignment: Any) -> StreamsTasks:
    return StreamsTasks(*map(_ids, (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)))


def _ids(tasks: Iterable[Any]) -> tuple[Partition, ...]:
    return tuple(sorted((each.subtopology_id, partition) for each in tasks for partition in each.partitions))


def _subtopology(found: Any) -> StreamsSubtopology:
    return StreamsSubtopology(
        found.subtopology_id,
        tuple(found.source_topics),
        tuple(info.name for info in found.repartition_source_topics),
        tuple(found.repartition_sink_topics),
        tuple(info.name for info in found.state_changelog_topics),
    )
