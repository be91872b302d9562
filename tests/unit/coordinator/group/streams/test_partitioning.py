"""Partition counts of internal topics where several subtopologies influence them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from tidelog.coordinator.group.streams.partitioning import IncorrectlyPartitioned, copartition_groups, decide, in_kafkas_order
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.streams_group_heartbeat import CopartitionGroup, Subtopology, TopicInfo


def test_counts_pass_through_several_repartition_topics() -> None:
    chain = [
        Subtopology("0", source_topics=["in"], repartition_sink_topics=["r1"]),
        Subtopology("1", repartition_source_topics=[TopicInfo("r1", 0, 0, [])], repartition_sink_topics=["r2"]),
        Subtopology(
            "2", repartition_source_topics=[TopicInfo("r2", 0, 0, [])], state_changelog_topics=[TopicInfo("log", 0, 0, [])]
        ),
    ]
    for order in (chain, chain[::-1]):
        assert decide(order, {"in": 7}.get).decided == {"r1": 7, "r2": 7, "log": 7}


def test_an_existing_topic_counts_as_it_is_for_tasks() -> None:
    reader = Subtopology("1", repartition_source_topics=[TopicInfo("rep", 0, 0, [])])
    writer = Subtopology("0", source_topics=["in"], repartition_sink_topics=["rep"])
    counts = decide([writer, reader], {"in": 2, "rep": 5}.get)
    assert counts.tasks_of(reader) == 5
    assert counts.decided == {"rep": 2}


def test_fixed_counts_of_the_whole_topology_have_to_agree_where_repartition_topics_are_joined() -> None:
    writer = Subtopology("0", source_topics=["in"], repartition_sink_topics=["r1"])
    both = CopartitionGroup(repartition_source_topics=[0])
    join = Subtopology("1", repartition_source_topics=[TopicInfo("r1", 4, 0, [])], copartition_groups=[both])
    other = Subtopology("2", repartition_source_topics=[TopicInfo("r2", 6, 0, [])])
    assert decide([writer, join], {"in": 1}.get).decided == {"r1": 4}
    with pytest.raises(IncorrectlyPartitioned, match="r1 has 4"):
        decide([writer, join, other], {"in": 1}.get)


def test_subtopologies_come_in_the_order_of_a_java_map() -> None:
    ordered = in_kafkas_order([Subtopology(str(number)) for number in range(12)])
    assert [each.subtopology_id for each in ordered][:3] == ["0", "11", "1"]


def test_copartition_groups_name_topics() -> None:
    groups = [
        CopartitionGroup(source_topics=[1], repartition_source_topics=[0]),
        CopartitionGroup(source_topics=[0]),
    ]
    subtopology = Subtopology("0", ["a", "b"], repartition_source_topics=[TopicInfo("rep", 0, 0, [])], copartition_groups=groups)
    assert copartition_groups(subtopology) == [frozenset({"b", "rep"}), frozenset({"a"})]


def rep(*names: str, partitions: int = 0) -> list[TopicInfo]:
    return [TopicInfo(name, partitions, 0, []) for name in names]


def round_by_round(subtopologies: Sequence[Subtopology], existing: dict[str, int]) -> dict[str, int] | None:
    """The counts of repartition topics as Kafka finds them; None for a loop, or for a topic to which nothing writes."""
    counts = {info.name: info.partitions for each in subtopologies for info in each.repartition_source_topics if info.partitions}
    before = -1
    while before != len(counts):
        before = len(counts)
        for each in subtopologies:
            for sink in each.repartition_sink_topics:
                known = [counts[info.name] for info in each.repartition_source_topics if info.name in counts]
                known += [existing[topic] for topic in each.source_topics]
                if sink not in counts and known:
                    counts[sink] = max(known)
    wanted = {info.name for each in subtopologies for info in each.repartition_source_topics}
    wanted |= {sink for each in subtopologies for sink in each.repartition_sink_topics}
    return counts if wanted <= counts.keys() else None


def test_each_subtopology_is_visited_once_with_the_result_of_kafkas_rounds() -> None:
    rng = random.Random(7)
    existing = {"in1": 3, "in2": 8}
    found: dict[bool, int] = {True: 0, False: 0}
    for _ in range(2_000):
        topics = [f"r{number}" for number in range(rng.randint(1, 6))]
        fixed = {topic: rng.choice([0, 0, 0, 5]) for topic in topics}
        subtopologies = []
        for number in range(rng.randint(1, 6)):
            inputs = rng.sample(topics, rng.randint(0, min(2, len(topics))))
            sources = rng.sample(sorted(existing), rng.randint(0 if inputs else 1, 1))
            sinks = rng.sample(topics, rng.randint(0, min(3, len(topics))))
            infos = [TopicInfo(name, fixed[name], 0, []) for name in inputs]
            subtopologies.append(
                Subtopology(str(number), sources, repartition_sink_topics=sinks, repartition_source_topics=infos)
            )
        wanted = round_by_round(subtopologies, existing)
        found[wanted is not None] += 1
        if wanted is None:
            with pytest.raises(KafkaError):
                decide(subtopologies, existing.get)
        else:
            assert decide(subtopologies, existing.get).decided == wanted
    assert min(found.values()) > 300


class Counted(list[TopicInfo]):
    """Counts how often it is read."""

    reads = 0

    def __iter__(self) -> Iterator[TopicInfo]:
        Counted.reads += 1
        return super().__iter__()


def test_the_work_grows_with_the_topology_and_not_with_its_square() -> None:
    def reads(length: int) -> int:
        chain = [Subtopology("0", source_topics=["in"], repartition_sink_topics=["r0"])]
        for number in range(length):
            inputs = Counted(rep(f"r{number}"))
            chain.append(
                Subtopology(str(number + 1), repartition_source_topics=inputs, repartition_sink_topics=[f"r{number + 1}"])
            )
        Counted.reads = 0
        assert set(decide(chain[::-1], {"in": 3}.get).decided.values()) == {3}
        return Counted.reads

    assert reads(400) <= 5 * reads(100)


def test_fixed_counts_are_compared_once_for_all_groups() -> None:
    def lookups(count: int) -> int:
        asked: list[str] = []

        def existing(topic: str) -> int | None:
            asked.append(topic)
            return None

        names = [f"r{number}" for number in range(count)]
        groups = [CopartitionGroup(repartition_source_topics=[number]) for number in range(count)]
        decide([Subtopology("0", repartition_source_topics=rep(*names, partitions=4), copartition_groups=groups)], existing)
        return len(asked)

    assert lookups(400) <= 5 * lookups(100)
