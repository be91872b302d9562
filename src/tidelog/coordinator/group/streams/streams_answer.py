"""The answer to a StreamsGroupHeartbeat: tasks, what keeps the group from working, and where other members serve queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from tidelog.coordinator.group.streams.owned_tasks import OwnedTasks
from tidelog.coordinator.group.streams.streams_group import StreamsMember
from tidelog.coordinator.group.streams.tasks import TaskSet
from tidelog.coordinator.group.streams.topology import ConfiguredTopology, InternalTopic
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    ResponseEndpoint,
    ResponseTaskIds,
    Status,
    StreamsGroupHeartbeatResponse,
    TopicPartition,
)

MOST_TEXT = 8_000
"""Characters of a text for a client. A string of a message has at most 32767 bytes, and names of topics come by the hundred."""


class StatusCode(IntEnum):
    """What a member learns beside its tasks; 1 to 3 come from the topology."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Answered(NamedTuple):
    """The response, the internal topics that the broker has to create for the client, and whether the heartbeat raised the
    group's epoch."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic]
    rebalances: bool = False


def shortened(text: str) -> str:
    """The text, or its beginning if it is too long to be sent."""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} ..."


def status(code: StatusCode, detail: str) -> Status:
    """One entry of the response's statuses."""
    return Status(status_code=code, status_detail=shortened(detail))


def told_tasks(response: StreamsGroupHeartbeatResponse, owned: OwnedTasks) -> None:
    """Puts a member's tasks into the response."""
    tasks = owned.plain()
    response.active_tasks, response.standby_tasks, response.warmup_tasks = map(
        _task_ids, (tasks.active, tasks.standby, tasks.warmup)
    )


def _task_ids(tasks: TaskSet) -> list[ResponseTaskIds]:
    return [ResponseTaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks)]


def partition_count(topics: TopicMetadata, name: str) -> int | None:
    """The partitions of an existing topic; None when there is none."""
    topic_id = topics.id_of(name)
    return None if topic_id is None else topics.spec_of(topic_id).partitions


def endpoints(
    topics: TopicMetadata, configured: ConfiguredTopology, members: Iterable[StreamsMember]
) -> list[EndpointToPartitions]:
    """Which input partitions each member with an endpoint has, active and standby. One entry for each member, although several
    threads of a process state the same endpoint: the clients join them."""
    found = []
    for member in members:
        if member.endpoint is not None:
            tasks = member.assigned.plain()
            found.append(
                EndpointToPartitions(
                    user_endpoint=ResponseEndpoint(*member.endpoint),
                    active_partitions=_partitions(topics, configured, tasks.active),
                    standby_partitions=_partitions(topics, configured, tasks.standby),
                )
            )
    return found


def _partitions(topics: TopicMetadata, configured: ConfiguredTopology, tasks: TaskSet) -> list[TopicPartition]:
    found = []
    for subtopology_id in sorted(tasks):
        subtopology = configured.subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        for name in (*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)):
            count = partition_count(topics, name)
            if count is not None:
                found.append(TopicPartition(name, [each for each in sorted(tasks[subtopology_id]) if each < count]))
    return found
