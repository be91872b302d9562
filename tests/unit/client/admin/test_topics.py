from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.topics import brokers, leaders, list_offsets, topics
from tidelog.client.calls import Node
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

CLUSTER = MetadataResponse(
    brokers=[MetadataResponseBroker(node_id=2, host="b"), MetadataResponseBroker(node_id=1, host="a")],
    topics=[
        MetadataResponseTopic(name="u", partitions=[MetadataResponsePartition(partition_index=0, leader_id=1)]),
        MetadataResponseTopic(
            name="t",
            partitions=[
                MetadataResponsePartition(partition_index=0, leader_id=1),
                MetadataResponsePartition(partition_index=1, leader_id=2),
                MetadataResponsePartition(partition_index=2, leader_id=-1),
            ],
        ),
    ],
)


def test_brokers_and_topics_come_in_order_and_no_topic_is_created() -> None:
    table = Table(CLUSTER)
    assert list(answered(brokers(), table)) == [1, 2]
    assert [topic.name for topic in answered(topics(["t", "u"]), table)] == ["t", "u"]
    assert not any(step.request.allow_auto_topic_creation for step in table.asked)


def test_partitions_without_a_leader_are_left_out() -> None:
    assert answered(leaders(["t"]), Table(CLUSTER)) == {("t", 0): 1, ("t", 1): 2, ("u", 0): 1}


def test_each_leader_is_asked_once_for_its_partitions() -> None:
    row = ListOffsetsPartitionResponse(partition_index=0, offset=5)
    table = Table(CLUSTER, ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])]))
    found = answered(list_offsets({("t", 0): -1, ("t", 1): -1, ("u", 0): -1, ("t", 2): -1}), table)
    assert found == {("t", 0): row}
    asked = {
        step.to: [(topic.name, part.partition_index) for topic in step.request.topics for part in topic.partitions]
        for step in table.asked[1:]
    }
    assert asked == {Node(1): [("t", 0), ("u", 0)], Node(2): [("t", 1)]}


def test_a_request_that_failed_as_a_whole_is_an_error() -> None:
    with pytest.raises(KafkaError, match="REBOOTSTRAP_REQUIRED"):
        answered(brokers(), Table(MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)))
