"""A streams group's topology and members; a whole sample is taken from a broker in tests/causes."""

from __future__ import annotations

import pytest

from tidelog.console.group_facts import STREAMS
from tidelog.console.streams_collecting import streams_group
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
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


def test_tasks_become_partitions_of_the_topics_that_are_read() -> None:
    subtopology = Subtopology(
        subtopology_id="0",
        source_topics=["orders", "users"],
        state_changelog_topics=[TopicInfo(name="store")],
        repartition_source_topics=[TopicInfo(name="again")],
    )
    tasks = Assignment(active_tasks=[TaskIds(subtopology_id="0", partitions=[0, 2])])
    member = Member(member_id="m", client_id="app", client_host="/h", topology_epoch=1, assignment=tasks, target_assignment=tasks)
    group = DescribedGroup(
        group_id="g", group_state="Stable", topology=Topology(epoch=2, subtopologies=[subtopology]), members=[member]
    )
    call = streams_group("g", 5)
    next(call)
    call.send(StreamsGroupDescribeResponse(groups=[group]))
    topics = [
        MetadataResponseTopic(name=name, partitions=[MetadataResponsePartition(partition_index=each) for each in range(count)])
        for name, count in (("orders", 3), ("users", 2), ("again", 3))
    ]
    with pytest.raises(StopIteration) as end:
        call.send(MetadataResponse(topics=topics))
    found = end.value.value
    assert (found.protocol, found.state) == (STREAMS, "Stable")
    assert found.members[0].assignment == {("orders", 0), ("orders", 2), ("users", 0), ("again", 0), ("again", 2)}
    assert (found.streams.sources, found.streams.internal) == ({"orders", "users"}, {"store", "again"})
    assert found.streams.stale == ("app at h: topology epoch 1",)
