"""The state of a streams group, and which topics it reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.group.streams.streams_driver import IN, WORDS, word_count
from tidelog.coordinator.group.streams.streams_group import Deadlines, MemberState, StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.coordinator.group.streams.topology_record import recorded
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology


def test_the_states() -> None:
    group = StreamsGroup("g")
    assert group.state is StreamsGroupState.EMPTY
    group.update_member(StreamsMember("m", epoch=1))
    assert group.state is StreamsGroupState.NOT_READY
    group.set_topology(recorded(word_count()))
    assert group.state is StreamsGroupState.STABLE
    group.validated_topology_epoch = -1
    assert group.state is StreamsGroupState.NOT_READY
    group.validated_topology_epoch, group.epoch = 0, 2
    assert group.state is StreamsGroupState.ASSIGNING
    group.assignment_epoch = 2
    assert group.state is StreamsGroupState.RECONCILING
    group.update_member(StreamsMember("m", epoch=2, state=MemberState.UNRELEASED_TASKS))
    assert group.state is StreamsGroupState.RECONCILING


def test_topics_and_their_subtopologies() -> None:
    group = StreamsGroup("g")
    assert group.subtopology_of(IN) is None
    group.set_topology(recorded(word_count()))
    assert [group.subtopology_of(each) for each in (IN, WORDS, "other")] == ["0", "1", None]
    group.set_topology(None)
    assert group.subtopology_of(IN) is None


def test_a_topic_that_several_subtopologies_read_counts_for_the_first_of_them() -> None:
    group = StreamsGroup("g")
    both = Subtopology("9", [IN, "more"], repartition_source_topics=[TopicInfo(WORDS)])
    group.set_topology(recorded(Topology(0, [both, *word_count().subtopologies])))
    assert [group.subtopology_of(each) for each in (IN, WORDS, "more")] == ["9", "9", "9"]


class Unread(list[Any]):
    """Topics that are not to be searched through."""

    def __contains__(self, item: object) -> bool:
        raise AssertionError(item)


def test_the_topology_is_not_searched_for_each_partition_of_a_commit() -> None:
    group = StreamsGroup("g")
    topology = recorded(word_count())
    group.set_topology(topology)
    for each in topology.subtopologies:
        each.source_topics = Unread(each.source_topics)
    assert group.subtopology_of(WORDS) == "1"


def test_unknown_members_and_the_earliest_deadline() -> None:
    with pytest.raises(KafkaError) as refused:
        StreamsGroup("g").member("m")
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    deadlines = Deadlines()
    assert deadlines.soonest_ms() is None
    deadlines.sessions["m"], deadlines.rebalances["m"], deadlines.first_assignment_ms = 9, (7, 1), 8
    assert deadlines.soonest_ms() == 7
    deadlines.forget("m")
    assert deadlines.soonest_ms() == 8
