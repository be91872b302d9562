"""From the topology that a client sent to tasks and internal topics, given the topics that exist.

The result says what keeps the group from working, in the terms of the heartbeat's status: a missing source topic, counts that
contradict each other, or internal topics that have to be created first. Source: KIP-1071.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from tidelog.coordinator.group.streams.partitioning import (
    CountOf,
    IncorrectlyPartitioned,
    PartitionCounts,
    Subtopology,
    TopicInfo,
    decide,
    in_kafkas_order,
    invalid,
)
from tidelog.coordinator.group.streams.tasks import TaskId
from tidelog.protocol.messages import streams_group_heartbeat
from tidelog.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue

Topology: TypeAlias = streams_group_heartbeat.Topology | StreamsGroupTopologyValue
"""As sent, or as recorded; the fields are the same."""

SHOWN = 3
"""Topics that a detail names; of further ones it says how many."""


class Status(IntEnum):
    """What a heartbeat reports about its group's topology."""

    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the group has no tasks yet."""

    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A repartition or changelog topic as it should be. ``replication_factor`` -1: the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """One subtopology; its tasks are ``range(tasks)``. Topics in the order of their names."""

    tasks: int
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]

    @property
    def stateful(self) -> bool:
        """A task without state needs no standby."""
        return bool(self.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """``subtopologies`` by id, in order; empty under a problem 1 or 2. ``missing_topics`` by name, those to create."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology]
    missing_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    problem: Problem | None = None

    @property
    def ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None

    def tasks(self) -> Iterator[TaskId]:
        """All tasks, by subtopology."""
        for subtopology_id, subtopology in self.subtopologies.items():
            for partition in range(subtopology.tasks):
                yield TaskId(subtopology_id, partition)

    def has_task(self, task: TaskId) -> bool:
        """Whether a task that a member claims to own exists."""
        subtopology = self.subtopologies.get(task.subtopology)
        return subtopology is not None and 0 <= task.partition < subtopology.tasks


def source_topics(topology: Topology) -> frozenset[str]:
    """The topics that the group reads: external ones and repartition topics."""
    return frozenset(
        topic
        for each in topology.subtopologies
        for topic in (*each.source_topics, *(info.name for info in each.repartition_source_topics))
    )


def required_topics(topology: Topology) -> frozenset[str]:
    """All topics that must exist: those that the group reads, and its changelogs."""
    changelogs = (info.name for each in topology.subtopologies for info in each.state_changelog_topics)
    return source_topics(topology).union(changelogs)


def configure(topology: Topology, partitions_of: CountOf) -> ConfiguredTopology:
    """Tasks, internal topics and the first problem. ``partitions_of``: the partition count of an existing topic, else None.

    Raises KafkaError 130 for a topology that cannot work with any topics.
    """
    ordered = in_kafkas_order(topology.subtopologies)
    missing = {topic for each in ordered for topic in each.source_topics if partitions_of(topic) is None}
    if missing:
        return _unusable(topology, Status.MISSING_SOURCE_TOPICS, f"Topics to read do not exist: {_named(missing)}.")
    try:
        counts = decide(ordered, partitions_of)
        subtopologies = {
            each.subtopology_id: _configured(each, counts) for each in sorted(ordered, key=lambda one: one.subtopology_id)
        }
        missing_topics = _missing_topics(subtopologies.values(), partitions_of)
    except IncorrectlyPartitioned as error:
        return _unusable(topology, Status.INCORRECTLY_PARTITIONED_TOPICS, str(error))
    problem = None
    if missing_topics:
        problem = Problem(Status.MISSING_INTERNAL_TOPICS, f"Internal topics do not exist yet: {_named(missing_topics)}")
    return ConfiguredTopology(topology.epoch, subtopologies, missing_topics, problem)


def _unusable(topology: Topology, status: Status, detail: str) -> ConfiguredTopology:
    return ConfiguredTopology(topology.epoch, {}, problem=Problem(status, detail))


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        tasks=counts.tasks_of(subtopology),
        source_topics=tuple(sorted(set(subtopology.source_topics))),
        repartition_source_topics=_internal(subtopology.repartition_source_topics, counts),
        repartition_sink_topics=tuple(sorted(set(subtopology.repartition_sink_topics))),
        state_changelog_topics=_internal(subtopology.state_changelog_topics, counts),
    )


def _internal(infos: Iterable[TopicInfo], counts: PartitionCounts) -> tuple[InternalTopic, ...]:
    topics = {}
    for info in infos:
        if info.name in topics:
            raise invalid(f"A subtopology names topic {info.name} twice.")
        count = info.partitions or counts.decided[info.name]
        if count < 1:
            raise invalid(f"Topic {info.name} is to have {count} partitions.")
        configs = {config.key: config.value for config in info.topic_configs}
        topics[info.name] = InternalTopic(info.name, count, info.replication_factor or -1, configs)
    return tuple(topics[name] for name in sorted(topics))


def _missing_topics(subtopologies: Iterable[ConfiguredSubtopology], partitions_of: CountOf) -> dict[str, InternalTopic]:
    wanted: dict[str, InternalTopic] = {}
    for each in subtopologies:
        wanted.update((topic.name, topic) for topic in each.repartition_source_topics)
        wanted.update((topic.name, topic) for topic in each.state_changelog_topics)
    missing = {}
    for name in sorted(wanted):
        count = partitions_of(name)
        if count is None:
            missing[name] = wanted[name]
        elif count != wanted[name].partitions:
            raise IncorrectlyPartitioned(
                f"Topic {name} has {count} partitions, but the topology needs {wanted[name].partitions}."
            )
    return missing


def _named(topics: Iterable[str]) -> str:
    ordered = sorted(topics)
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more
