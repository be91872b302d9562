from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.topics.partitions import (
    create_partitions,
    describe_topic_partitions,
    elect_leaders,
)
from tidelog.broker.operations import NOT_ASKED
from tidelog.metadata.image import PartitionImage, TopicImage, TopicsImage
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

STOPPED = KafkaError(ErrorCode.NOT_CONTROLLER, "the controller has stopped")


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_there_when_their_creation_is_answered(version: int) -> None:
    world = NodeWorld()
    world.create("t", 2)
    wanted = [
        CreatePartitionsTopic(name="t", count=5, assignments=None),
        CreatePartitionsTopic(name="missing", count=1, assignments=None),
    ]
    response = run(create_partitions(world.context(version), CreatePartitionsRequest(topics=wanted)))
    assert [(each.name, each.error_code) for each in response.results] == [("t", 0), ("missing", 3)]
    assert len(world.broker.image.topics.by_name["t"].partitions) == 5
    assert type(response).decode(response.encode(version), version).results[0].name == "t"


def test_refusals_of_whole_requests_are_told() -> None:
    asked = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a"), CreatePartitionsTopic(name="a")])
    world = NodeWorld()
    answered = refused(world.context(3), ApiKey.CREATE_PARTITIONS, asked, STOPPED)
    assert [(each.name, each.error_code) for each in answered.results] == [("a", 41), ("a", 41)]
    elections = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[0, 3])])
    for version in range(3):
        answer = refused(world.context(version), ApiKey.ELECT_LEADERS, elections, STOPPED)
        told = type(answer).decode(answer.encode(version), version).replica_election_results[0].partition_result
        assert [(each.partition_id, each.error_code) for each in told] == [(0, 41), (3, 41)]


@pytest.mark.parametrize("version", range(3))
def test_a_leader_that_is_the_preferred_one_needs_no_election(version: int) -> None:
    world = NodeWorld()
    world.create("t")
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    response = run(elect_leaders(world.context(version), request))
    (result,) = response.replica_election_results[0].partition_result
    assert result.error_code == ErrorCode.ELECTION_NOT_NEEDED
    response.encode(version)


def describe(
    world: NodeWorld, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=RequestCursor(*cursor) if cursor is not None else None,
    )
    response = describe_topic_partitions(world.context(0), request)
    response.encode(0)
    return response


def test_topics_are_described_with_what_is_wrong_with_each() -> None:
    world = NodeWorld()
    topic_id = world.create("t")
    topics = describe(world, "t", "missing", "a name").topics
    assert [(each.name, each.error_code, each.topic_id) for each in topics] == [
        ("a name", ErrorCode.INVALID_TOPIC_EXCEPTION, ZERO_UUID),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ZERO_UUID),
        ("t", ErrorCode.NONE, topic_id),
    ]
    (partition,) = topics[2].partitions
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == (1, [1], [1], [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert all(each.topic_authorized_operations == 3576 for each in topics)


def test_the_smaller_of_both_limits_holds_and_is_at_least_one() -> None:
    world = NodeWorld({"max.request.partition.size.limit": "3"})
    world.create("t", 5)
    for asked, shown in ((0, 1), (2, 2), (3, 3), (9, 3)):
        response = describe(world, limit=asked)
        assert len(response.topics[0].partitions) == shown
        assert response.next_cursor is not None
        assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("t", shown)
    assert describe(world, cursor=("t", 3)).next_cursor is None


@pytest.mark.parametrize("cursor", [("a", -1), ("other", 0)])
def test_a_cursor_that_does_not_belong_to_the_topics_is_refused_for_each_of_them(cursor: tuple[str, int]) -> None:
    world = NodeWorld()
    world.create("a")
    response = describe(world, "a", "b", cursor=cursor)
    assert [(each.name, each.error_code) for each in response.topics] == [("a", 42), ("b", 42)]


def test_a_leader_that_cannot_be_reached_on_this_listener_is_not_named() -> None:
    world = NodeWorld()
    topic_id = world.create("t")
    gone = PartitionImage((1, 2), (1, 2), 2, leader_epoch=4, directories=(ZERO_UUID, ZERO_UUID))
    topic = TopicImage(topic_id, "t", (gone,))
    world.broker.image = replace(world.broker.image, topics=TopicsImage({topic_id: topic}, {"t": topic}))
    (partition,) = describe(world, "t").topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.offline_replicas) == (-1, 4, [2])
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE


def permit(world: NodeWorld, *names: str) -> None:
    """The client may describe these topics, and read the first."""
    describe = {(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in names}
    world.broker.access = Allowing(describe | {(AclOperation.READ, ResourceType.TOPIC, names[0])})


def test_named_topics_are_refused_without_describe_whether_they_exist_or_not() -> None:
    world = NodeWorld()
    for name in ("a", "b", "c"):
        world.create(name)
    permit(world, "b", "missing")
    answers = describe(world, "a", "b", "missing", "nowhere").topics
    assert [(each.name, each.error_code) for each in answers] == [("b", 0), ("missing", 3), ("a", 29), ("nowhere", 29)]
    assert [each.topic_id == ZERO_UUID for each in answers] == [False, True, True, True]
    operations = [each.topic_authorized_operations for each in answers]
    assert operations == [1 << AclOperation.READ | 1 << AclOperation.DESCRIBE, 1 << AclOperation.DESCRIBE, NOT_ASKED, NOT_ASKED]


def test_of_all_topics_only_the_visible_ones_are_described_page_by_page() -> None:
    world = NodeWorld()
    for name in ("a", "b", "c", "d"):
        world.create(name, 2)
    permit(world, "b", "d")
    page = describe(world, limit=3)
    assert [(each.name, len(each.partitions)) for each in page.topics] == [("b", 2), ("d", 1)]
    assert page.next_cursor is not None
    rest = describe(world, limit=3, cursor=(page.next_cursor.topic_name, page.next_cursor.partition_index))
    assert [(each.name, len(each.partitions)) for each in rest.topics] == [("d", 1)]
    assert rest.next_cursor is None
    permit(world, "nothing")
    assert describe(world).topics == []
    assert isinstance(world.broker.access, Allowing) and not world.broker.access.loud
