"""Tasks and internal topics of a topology."""

from __future__ import annotations

import pytest

from tidelog.coordinator.group.streams.tasks import TaskId
from tidelog.coordinator.group.streams.topology import (
    ConfiguredTopology,
    InternalTopic,
    Status,
    configure,
    required_topics,
    source_topics,
)
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_heartbeat import CopartitionGroup, KeyValue, Subtopology, TopicInfo, Topology


def word_count(epoch: int = 2, partitions: int = 0) -> Topology:
    """Reads "in", writes "rep", which a second subtopology counts into "log"."""
    return Topology(
        epoch,
        [
            Subtopology("0", source_topics=["in"], repartition_sink_topics=["rep"]),
            Subtopology(
                "1",
                repartition_source_topics=[TopicInfo("rep", partitions, 3, [KeyValue("retention.ms", "-1")])],
                state_changelog_topics=[TopicInfo("log", 0, 0, [])],
            ),
        ],
    )


def joined(*topics: TopicInfo, sources: list[str]) -> Topology:
    """One subtopology that joins all its inputs; another one, of "in", writes the repartition topics."""
    group = CopartitionGroup(source_topics=list(range(len(sources))), repartition_source_topics=list(range(len(topics))))
    writer = Subtopology("0", source_topics=["in"], repartition_sink_topics=[topic.name for topic in topics])
    join = Subtopology("1", source_topics=sources, repartition_source_topics=list(topics), copartition_groups=[group])
    return Topology(0, [writer, join])


def problem(configured: ConfiguredTopology) -> tuple[Status, str]:
    assert configured.problem is not None
    return configured.problem.status, configured.problem.detail


def refused(topology: Topology, **topics: int) -> str:
    with pytest.raises(KafkaError) as caught:
        configure(topology, topics.get)
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    return caught.value.detail


def test_internal_topics_that_do_not_exist_are_named_with_what_they_need() -> None:
    configured = configure(word_count(), {"in": 3}.get)
    assert problem(configured) == (Status.MISSING_INTERNAL_TOPICS, "Internal topics do not exist yet: log, rep")
    assert configured.missing_topics == {
        "log": InternalTopic("log", 3, -1),
        "rep": InternalTopic("rep", 3, 3, {"retention.ms": "-1"}),
    }
    assert not configured.ready


def test_a_topology_is_ready_when_its_topics_exist() -> None:
    configured = configure(word_count(), {"in": 2, "rep": 2, "log": 2}.get)
    assert configured.ready
    assert configured.epoch == 2
    assert list(configured.tasks()) == [TaskId("0", 0), TaskId("0", 1), TaskId("1", 0), TaskId("1", 1)]
    assert not configured.subtopologies["0"].stateful
    assert configured.subtopologies["1"].stateful
    assert configured.has_task(TaskId("1", 1))
    assert not configured.has_task(TaskId("1", 2))
    assert not configured.has_task(TaskId("1", -1))
    assert not configured.has_task(TaskId("2", 0))


def test_a_count_that_the_client_fixed_stays() -> None:
    configured = configure(word_count(partitions=5), {"in": 2}.get)
    assert configured.missing_topics["rep"].partitions == 5
    assert configured.missing_topics["log"].partitions == 5
    assert configured.subtopologies["1"].tasks == 5


def test_three_missing_source_topics_are_named_and_the_others_counted() -> None:
    topology = Topology(0, [Subtopology("0", source_topics=["e", "d", "c", "b", "a"])])
    configured = configure(topology, {"a": 1}.get)
    assert problem(configured) == (Status.MISSING_SOURCE_TOPICS, "Topics to read do not exist: b, c, d and 1 more.")
    assert not configured.subtopologies


def test_an_internal_topic_with_another_count_is_a_problem() -> None:
    configured = configure(word_count(), {"in": 3, "rep": 3, "log": 4}.get)
    assert problem(configured) == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Topic log has 4 partitions, but the topology needs 3.",
    )
    assert not configured.missing_topics


def test_repartition_topics_take_the_count_of_the_source_that_they_are_joined_with() -> None:
    configured = configure(joined(TopicInfo("rep", 0, 0, []), sources=["a", "b"]), {"in": 2, "a": 6, "b": 6}.get)
    assert configured.missing_topics["rep"].partitions == 6


def test_joined_sources_with_different_counts_are_a_problem() -> None:
    configured = configure(joined(sources=["a", "b"]), {"in": 1, "a": 6, "b": 4}.get)
    assert problem(configured) == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Joined topics need equal partition counts: a has 6, b has 4.",
    )


def test_a_fixed_repartition_topic_that_is_joined_with_another_count_is_a_problem() -> None:
    configured = configure(joined(TopicInfo("rep", 3, 0, []), sources=["a"]), {"in": 1, "a": 4}.get)
    assert problem(configured) == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [3] of repartition topic [rep] doesn't match number of partitions [4] of the source topic.",
    )


def test_joined_repartition_topics_get_the_highest_count_or_the_fixed_one() -> None:
    topics = {"in": 2, "other": 5}
    topology = joined(TopicInfo("r1", 0, 0, []), TopicInfo("r2", 0, 0, []), sources=[])
    topology.subtopologies.append(Subtopology("2", source_topics=["other"], repartition_sink_topics=["r2"]))
    topology.subtopologies[0].repartition_sink_topics.remove("r2")
    configured = configure(topology, topics.get)
    assert {name: topic.partitions for name, topic in configured.missing_topics.items()} == {"r1": 5, "r2": 5}
    topology.subtopologies[1].repartition_source_topics[0].partitions = 4
    configured = configure(topology, topics.get)
    assert {name: topic.partitions for name, topic in configured.missing_topics.items()} == {"r1": 4, "r2": 4}


def test_topologies_that_cannot_work_are_refused() -> None:
    loop = Topology(
        0, [Subtopology("0", repartition_source_topics=[TopicInfo("rep", 0, 0, [])], repartition_sink_topics=["rep"])]
    )
    assert refused(loop) == "Partition counts of repartition topics depend on each other in a loop."
    unwritten = Topology(0, [Subtopology("0", repartition_source_topics=[TopicInfo("rep", 0, 0, [])])])
    assert refused(unwritten) == "Nothing writes to the repartition topics rep."
    assert refused(Topology(0, [Subtopology("0")])) == "Subtopology 0 reads no topic."
    twice = Topology(0, [Subtopology("0", source_topics=["in"]), Subtopology("0", source_topics=["in"])])
    assert refused(twice) == "Two subtopologies have the same id."
    assert refused(word_count(partitions=-1), **{"in": 1}).startswith("Repartition topic rep")


@pytest.mark.parametrize("index", [1, -1])
def test_a_copartition_group_may_name_only_topics_of_its_subtopology(index: int) -> None:
    topology = Topology(0, [Subtopology("0", source_topics=["in"], copartition_groups=[CopartitionGroup(source_topics=[index])])])
    assert refused(topology, **{"in": 1}) == "A copartition group of subtopology 0 names a topic that it lacks."


def test_topics_of_a_topology() -> None:
    assert source_topics(word_count()) == {"in", "rep"}
    assert required_topics(word_count()) == {"in", "rep", "log"}
