"""A topology as a client sends it, as the record that keeps it, and as administrators see it."""

from __future__ import annotations

from tidelog.coordinator.group.streams.topology import ConfiguredTopology, InternalTopic
from tidelog.protocol.messages import streams_group_describe as described
from tidelog.protocol.messages import streams_group_topology_value as record
from tidelog.protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from tidelog.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue


def recorded(topology: Topology) -> StreamsGroupTopologyValue:
    """The record of a topology as sent."""
    return StreamsGroupTopologyValue(topology.epoch, [_subtopology(each) for each in topology.subtopologies])


def _subtopology(sent: Subtopology) -> record.Subtopology:
    return record.Subtopology(
        subtopology_id=sent.subtopology_id,
        source_topics=list(sent.source_topics),
        source_topic_regex=list(sent.source_topic_regex),
        state_changelog_topics=[_topic(each) for each in sent.state_changelog_topics],
        repartition_sink_topics=list(sent.repartition_sink_topics),
        repartition_source_topics=[_topic(each) for each in sent.repartition_source_topics],
        copartition_groups=[
            record.CopartitionGroup(list(each.source_topics), list(each.source_topic_regex), list(each.repartition_source_topics))
            for each in sent.copartition_groups
        ],
    )


def _topic(sent: TopicInfo) -> record.TopicInfo:
    configs = [record.TopicConfig(each.key, each.value) for each in sent.topic_configs]
    return record.TopicInfo(sent.name, sent.partitions, sent.replication_factor, configs)


def same_topology(first: StreamsGroupTopologyValue, second: StreamsGroupTopologyValue) -> bool:
    """Whether both are the same; the order of subtopologies does not matter."""

    def ordered(topology: StreamsGroupTopologyValue) -> list[record.Subtopology]:
        return sorted(topology.subtopologies, key=lambda each: each.subtopology_id)

    return first.epoch == second.epoch and ordered(first) == ordered(second)


def described_topology(topology: StreamsGroupTopologyValue, configured: ConfiguredTopology | None) -> described.Topology:
    """With the partition counts that the broker decided, once all topics are there; until then as the client sent it."""
    if configured is not None and configured.ready:
        return described.Topology(
            configured.epoch,
            [
                described.Subtopology(
                    subtopology_id=subtopology_id,
                    source_topics=list(each.source_topics),
                    repartition_sink_topics=list(each.repartition_sink_topics),
                    state_changelog_topics=[_configured(topic) for topic in each.state_changelog_topics],
                    repartition_source_topics=[_configured(topic) for topic in each.repartition_source_topics],
                )
                for subtopology_id, each in configured.subtopologies.items()
            ],
        )
    return described.Topology(
        topology.epoch,
        [
            described.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                state_changelog_topics=_sent(each.state_changelog_topics),
                repartition_source_topics=_sent(each.repartition_source_topics),
            )
            for each in sorted(topology.subtopologies, key=lambda one: one.subtopology_id)
        ],
    )


def _configured(topic: InternalTopic) -> described.TopicInfo:
    configs = [described.KeyValue(key, topic.configs[key]) for key in sorted(topic.configs)]
    return described.TopicInfo(topic.name, topic.partitions, max(topic.replication_factor, 0), configs)


def _sent(topics: list[record.TopicInfo]) -> list[described.TopicInfo]:
    return [
        described.TopicInfo(
            each.name,
            each.partitions,
            each.replication_factor,
            [described.KeyValue(config.key, config.value) for config in each.topic_configs],
        )
        for each in sorted(topics, key=lambda one: one.name)
    ]
