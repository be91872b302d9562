"""StreamsGroupDescribe."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import ALL_TOPICS, ANN, COUNTS, IN, WORDS, StreamsDriver, endpoint
from tidelog.model.errors import ErrorCode


def test_a_group_is_described_with_the_partitions_that_the_broker_decided() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN, rack_id="r", user_endpoint=endpoint("h", 8), client_tags=[])
    group = driver.machine.streams.describe("g")
    assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Stable", 2, 2)
    assert group.topology is not None
    first, second = group.topology.subtopologies
    assert (first.source_topics, first.repartition_sink_topics) == ([IN], [WORDS])
    assert [(each.name, each.partitions, each.replication_factor) for each in second.state_changelog_topics] == [(COUNTS, 2, 0)]
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.topology_epoch, member.rack_id) == (ANN, 2, 0, "r")
    assert member.user_endpoint is not None
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("h", 8)
    assert [(each.subtopology_id, each.partitions) for each in member.assignment.active_tasks] == [("0", [0, 1]), ("1", [0, 1])]
    assert member.target_assignment == member.assignment


def test_a_topology_that_is_not_ready_is_described_as_sent() -> None:
    driver = StreamsDriver(topics={IN: 2})
    driver.enter_streams(ANN)
    group = driver.machine.streams.describe("g")
    assert group.group_state == "NotReady"
    assert group.topology is not None
    (repartition,) = group.topology.subtopologies[1].repartition_source_topics
    assert (repartition.name, repartition.partitions) == (WORDS, 0)
    driver.restart()
    assert driver.machine.streams.describe("g").topology == group.topology


def test_groups_that_are_not_there_or_of_another_protocol() -> None:
    driver = StreamsDriver(topics={**ALL_TOPICS, "t": 1})
    driver.enter("consumers", "a")
    for group_id in ("none", "consumers"):
        answer = driver.machine.streams.describe(group_id)
        assert (answer.error_code, answer.topology) == (ErrorCode.GROUP_ID_NOT_FOUND, None)
