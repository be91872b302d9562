"""The state of a streams group, and which topics it reads."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.streams.streams_driver import IN, WORDS, word_count
from tidelog.coordinator.group.streams.streams_group import Deadlines, MemberState, StreamsGroup, StreamsGroupState, StreamsMember
from tidelog.coordinator.group.streams.topology_record import recorded
from tidelog.model.errors import ErrorCode, KafkaError


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
