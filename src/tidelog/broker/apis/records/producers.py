"""DescribeProducers: the producer state of partitions."""

from __future__ import annotations

from tidelog.broker.authorization import allowed
from tidelog.broker.node import BrokerContext
from tidelog.controller.topic_names import name_problem
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from tidelog.replication.partition import Partition
from tidelog.storage.producer_state import ProducerEntry


def describe_producers(ctx: BrokerContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Sent by kafka-transactions, to the leader or to the broker given by ``--broker-id``, to find hanging transactions. Each
    replica answers from its own log.

    Errors per partition: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED, NOT_LEADER_OR_FOLLOWER,
    KAFKA_STORAGE_ERROR.
    """
    names = (topic.name for topic in request.topics if name_problem(topic.name) is None)
    readable = allowed(ctx, AclOperation.READ, ResourceType.TOPIC, names)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_described(ctx, topic, index, readable) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _described(ctx: BrokerContext, topic: TopicRequest, index: int, readable: frozenset[str]) -> PartitionResponse:
    problem = name_problem(topic.name)
    if problem is not None:
        return PartitionResponse(partition_index=index, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=problem)
    if topic.name not in readable:
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return PartitionResponse(partition_index=index, error_code=denied, error_message=denied.text)
    if topic.name not in ctx.image.topics.by_name:
        message = "This server does not host this topic-partition."
        return PartitionResponse(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message)
    found = ctx.node.replicas.by_name(topic.name, index)
    if not isinstance(found, Partition):
        return PartitionResponse(partition_index=index, error_code=found)
    if found.log is None:
        return PartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    producers = [_state(entry) for entry in found.log.producers.entries.values()]
    return PartitionResponse(partition_index=index, active_producers=producers)


def _state(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )
