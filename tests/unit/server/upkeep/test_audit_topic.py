from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, run
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from tidelog.records.record import iter_records
from tidelog.server.upkeep.audit_topic import PURPOSE, RETENTION_MS, AuditTopic, NotWritten, NotYet

NAME = "__audit"
"""Of the topic."""


class Others:
    """Another broker, which answers a Produce with a code."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.asked: list[tuple[int, str, ProduceRequest]] = []

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        self.asked.append((broker_id, purpose, request))
        if self.code is ErrorCode.NETWORK_EXCEPTION:
            raise KafkaError(self.code)
        answer = PartitionProduceResponse(error_code=self.code)
        return ProduceResponse(responses=[TopicProduceResponse(name=NAME, partition_responses=[answer])])


def values(batch: Any) -> list[bytes | None]:
    return [record.value for record in iter_records(batch)]


def led_by(world: NodeWorld, *leaders: int) -> None:
    """The topic has partitions with these leaders, as far as the image says."""
    topics = world.broker.image.topics
    topic = topics.by_name[NAME]
    partitions = tuple(PartitionImage((max(leader, 0),), (max(leader, 0),), leader) for leader in leaders)
    changed = replace(topic, partitions=partitions)
    world.broker.image = replace(world.broker.image, topics=replace(topics, by_name={NAME: changed}, by_id={topic.id: changed}))


def test_the_topic_is_created_with_its_first_events() -> None:
    world = NodeWorld()
    topic = AuditTopic(world.broker, NAME)
    with pytest.raises(NotYet, match="__audit is being created"):
        run(topic.write([b"{}"]))
    made = world.broker.image.topics.by_name[NAME]
    assert len(made.partitions) == 1
    assert world.broker.image.topic_configs(NAME) == {"cleanup.policy": "delete", "retention.ms": str(RETENTION_MS)}


def test_another_broker_gets_a_produce() -> None:
    world = NodeWorld()
    world.create(NAME)
    others = world.broker.others = Others()
    led_by(world, -1, 7, 8)
    run(AuditTopic(world.broker, NAME).write([b"one", b"two"]))
    ((broker_id, purpose, request),) = others.asked
    assert (broker_id, purpose, request.acks) == (7, PURPOSE, 1)
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert (topic.name, topic.topic_id) == (NAME, world.broker.image.topics.by_name[NAME].id)
    assert (partition.index, values(partition.records)) == (1, [b"one", b"two"])


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_refusal_is_an_error_and_so_is_silence(code: ErrorCode) -> None:
    world = NodeWorld()
    world.create(NAME)
    led_by(world, 7)
    world.broker.others = Others(code)
    with pytest.raises(NotWritten, match=f"{NAME}-0 on broker 7: {code.name}"):
        run(AuditTopic(world.broker, NAME).write([b"one"]))
    world.broker.others = Others(ErrorCode.NETWORK_EXCEPTION)
    with pytest.raises(KafkaError):
        run(AuditTopic(world.broker, NAME).write([b"one"]))
    led_by(world, -1, -1)
    with pytest.raises(NotWritten, match="no partition of __audit has a leader"):
        run(AuditTopic(world.broker, NAME).write([b"one"]))
