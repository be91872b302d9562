from __future__ import annotations

import pytest

from tidelog.console.asking.overview import overview
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_topics_partitions_and_brokers_of_one_answer() -> None:
    partitions = [
        MetadataResponsePartition(partition_index=1, leader_id=-1, replica_nodes=[1, 2], isr_nodes=[]),
        MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2]),
        MetadataResponsePartition(partition_index=2, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1]),
    ]
    call = overview()
    next(call)
    with pytest.raises(StopIteration) as end:
        call.send(
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092)],
                cluster_id="c",
                topics=[
                    MetadataResponseTopic(name="b", error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)),
                    MetadataResponseTopic(name="a", topic_id=b"i" * 16, partitions=partitions),
                ],
            )
        )
    found = end.value.value
    assert list(found.topics) == ["a", "b"]
    topic = found.topic("a")
    assert [part.index for part in topic.partitions] == [0, 1, 2]
    assert (topic.unclean, topic.replication, topic.partitions[1].leader) == (2, 2, None)
    assert found.topic("b").error == "TOPIC_AUTHORIZATION_FAILED"
    assert found.partition_count == 3
    assert found.missing_brokers() == {2: 3}
    assert [at for at, _ in found.each_partition()] == [("a", 0), ("a", 1), ("a", 2)]
    with pytest.raises(KafkaError):
        found.topic("c")


def test_of_the_topics_asked_for_those_that_there_are() -> None:
    call = overview(["a", "gone"])
    asked = next(call)
    assert [each.name for each in asked.request.topics] == ["a", "gone"]
    gone = MetadataResponseTopic(name="gone", error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with pytest.raises(StopIteration) as end:
        call.send(MetadataResponse(topics=[gone, MetadataResponseTopic(name="a")]))
    assert list(end.value.value.topics) == ["a"]
