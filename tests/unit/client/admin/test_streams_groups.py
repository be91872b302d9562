from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.group_results import StreamsMember, StreamsSubtopology, StreamsTasks
from tidelog.client.admin.streams_groups import describe
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)


def test_members_have_tasks_and_the_topology_its_topics() -> None:
    tasks = [TaskIds(subtopology_id="1", partitions=[1, 0]), TaskIds(subtopology_id="0", partitions=[2])]
    member = Member(
        member_id="m",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        topology_epoch=1,
        process_id="p",
        assignment=Assignment(active_tasks=tasks),
        target_assignment=Assignment(standby_tasks=tasks[:1]),
    )
    subtopology = Subtopology(
        subtopology_id="0",
        source_topics=["in"],
        repartition_source_topics=[TopicInfo(name="r")],
        repartition_sink_topics=["s"],
        state_changelog_topics=[TopicInfo(name="l")],
    )
    group = DescribedGroup(
        group_id="g",
        group_state="Stable",
        group_epoch=3,
        assignment_epoch=2,
        topology=Topology(epoch=1, subtopologies=[subtopology]),
        members=[member],
    )
    found = answered(describe("g"), Table(StreamsGroupDescribeResponse(groups=[group])))
    active = StreamsTasks((("0", 2), ("1", 0), ("1", 1)), (), ())
    target = StreamsTasks((), (("1", 0), ("1", 1)), ())
    assert found.members == (StreamsMember("m", None, "c", "/h", "p", 3, 1, active, target, False),)
    assert found.subtopologies == (StreamsSubtopology("0", ("in",), ("r",), ("s",), ("l",)),)
    assert (found.state, found.epoch, found.target_epoch, found.topology_epoch) == ("Stable", 3, 2, 1)


def test_a_group_may_have_no_topology_and_an_error_is_raised() -> None:
    group = DescribedGroup(group_id="g", group_state="Empty", topology=None)
    found = answered(describe("g"), Table(StreamsGroupDescribeResponse(groups=[group])))
    assert (found.topology_epoch, found.subtopologies) == (-1, ())
    group = DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_id="g")
    with pytest.raises(KafkaError):
        answered(describe("g"), Table(StreamsGroupDescribeResponse(groups=[group])))
