"""FindCoordinator: the broker that coordinates a group or a transactional id.

A group or transactional id belongs to the partition of an internal topic that its name hashes to; the leader of that partition is
its coordinator. The first request creates the topic. Until it has leaders the answer is COORDINATOR_NOT_AVAILABLE, and clients
retry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.broker.node import Broker, BrokerContext
from tidelog.broker.quotas.mutations import submit_own
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.coordinator.placement import partition_of
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from tidelog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

log = logging.getLogger(__name__)

GROUP_KEY = 0
TRANSACTION_KEY = 1
BATCHED_FROM = 4
CREATE_TIMEOUT_MS = 30_000
NOT_SERVED = (
    "This version of tidelog does not serve share groups; groups (key type 0) and transactional ids (1) have a coordinator."
)


@dataclass(frozen=True, slots=True)
class _Internal:
    """An internal topic to create."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    min_isr: int | None = None


def _offsets(config: BrokerConfig) -> _Internal:
    return _Internal(
        OFFSETS_TOPIC,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def _transactions(config: BrokerConfig) -> _Internal:
    return _Internal(
        TRANSACTION_STATE_TOPIC,
        config.transaction_state_log_num_partitions,
        config.transaction_state_log_replication_factor,
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
        config.transaction_state_log_min_isr,
    )


_TOPICS: Mapping[int, Callable[[BrokerConfig], _Internal]] = {GROUP_KEY: _offsets, TRANSACTION_KEY: _transactions}
_NAMES: Mapping[int, str] = {GROUP_KEY: OFFSETS_TOPIC, TRANSACTION_KEY: TRANSACTION_STATE_TOPIC}


def find_coordinator(ctx: BrokerContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Sent by consumers, transactional producers and administrators. v1 added key types, v3 tagged fields, v4 several keys per
    request.

    The topic gets the replicas that its settings demand (offsets.topic.replication.factor,
    transaction.state.log.replication.factor), so it cannot be created before that many brokers have registered. Errors: 15 while
    the topic is being created, while its partition has no leader, and when this broker is cut off and may have been replaced; 35
    for unknown key types. The empty name has a coordinator like any other, as in Kafka.
    """
    if ctx.api_version >= BATCHED_FROM:
        return FindCoordinatorResponse(coordinators=[_find(ctx, request.key_type, key) for key in request.coordinator_keys])
    found = _find(ctx, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(ctx: BrokerContext, key_type: int, key: str) -> Coordinator:
    name = _NAMES.get(key_type)
    if name is None:
        return _none(key, ErrorCode.UNSUPPORTED_VERSION, NOT_SERVED)
    topic = ctx.image.topics.by_name.get(name)
    if topic is None:
        _create(ctx.node, _TOPICS[key_type](ctx.config))
        refused = ctx.node.creations_refused.get(name)
        message = f"{name} is being created; ask again." if refused is None else f"{name} cannot be created: {refused}"
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
    shards: Shards[Any] = ctx.node.transactions if key_type == TRANSACTION_KEY else ctx.node.groups
    if leader == ctx.node.node_id and shards.doubts(key):
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "This broker is cut off from the others; ask another one.")
    broker = ctx.image.brokers.get(leader)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(ctx.listener)
    if endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The partition of {name} has no leader; ask again.")
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message=None)


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)


def _create(broker: Broker, topic: _Internal) -> None:
    if topic.name not in broker.topics_being_created:
        broker.topics_being_created[topic.name] = None
        broker.runtime.spawn(_created(broker, topic), f"creating {topic.name}")


async def create_internal_topics(broker: Broker) -> None:
    """Create the internal topics in advance; otherwise the first client that needs one has to retry."""
    for topic in (make(broker.config) for make in _TOPICS.values()):
        if topic.name not in broker.image.topics.by_name and topic.name not in broker.topics_being_created:
            broker.topics_being_created[topic.name] = None
            await _created(broker, topic)


async def _created(broker: Broker, topic: _Internal) -> None:
    replicas, min_isr = topic.replication_factor, topic.min_isr
    if broker.config.embedded:
        # An embedded node stays a cluster of one; with more replicas its coordinators could never start.
        replicas, min_isr = 1, None if min_isr is None else 1
    configs = dict(topic.configs)
    if min_isr is not None:
        configs["min.insync.replicas"] = str(min_isr)
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=replicas,
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
            )
        ],
        timeout_ms=CREATE_TIMEOUT_MS,
    )
    try:
        response: CreateTopicsResponse = await submit_own(broker, QuorumController.create_topics, request)
    except KafkaError as error:
        # The client retries, and that tries again.
        _refused(broker, topic.name, str(error))
        return
    finally:
        broker.topics_being_created.pop(topic.name, None)
    for result in response.topics:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            _refused(broker, topic.name, f"{ErrorCode(result.error_code).name}: {result.error_message}")


def _refused(broker: Broker, name: str, why: str) -> None:
    """Clients ask many times a second; log each reason once."""
    if broker.creations_refused.get(name) != why:
        broker.creations_refused[name] = why
        log.warning("%s cannot be created: %s", name, why)
