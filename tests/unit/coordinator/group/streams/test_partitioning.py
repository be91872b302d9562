"""Partition counts of internal topics where several subtopologies influence them."""

from __future__ import annotations

import pytest

from tidelog.coordinator.group.streams.partitioning import IncorrectlyPartitioned, copartition_groups, decide, in_kafkas_order
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
