"""The internal topics of the coordinators: their partitions, replicas and settings, and when they are created.

``offsets.topic.*`` decides about ``__consumer_offsets``, ``transaction.state.log.*`` about ``__transaction_state``. The first
FindCoordinator for a group or transactional id creates the topic. It gets as many replicas as its settings demand, so it cannot
be created before that many brokers have registered; on an embedded node it gets one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidelog.broker.node import Broker
from tidelog.broker.quotas.mutations import submit_own
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from tidelog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

log = logging.getLogger(__name__)

CREATE_TIMEOUT_MS = 30_000


class InternalTopic(NamedTuple):
    """An internal topic to create. ``min_isr`` None: ``min.insync.replicas`` of the cluster."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    min_isr: int | None = None


def _offsets(config: BrokerConfig) -> InternalTopic:
    return InternalTopic(
        OFFSETS_TOPIC,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def _transactions(config: BrokerConfig) -> InternalTopic:
    return InternalTopic(
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


def _shares(config: BrokerConfig) -> InternalTopic:
    # Snapshots and updates have the same key: compaction would lose all but the last.
    return InternalTopic(
        SHARE_STATE_TOPIC,
        config.share_coordinator_state_topic_num_partitions,
        config.share_coordinator_state_topic_replication_factor,
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            "retention.ms": "-1",
        },
        config.share_coordinator_state_topic_min_isr,
    )


_TOPICS: Mapping[str, Callable[[BrokerConfig], InternalTopic]] = {
    OFFSETS_TOPIC: _offsets,
    TRANSACTION_STATE_TOPIC: _transactions,
    SHARE_STATE_TOPIC: _shares,
}
_IN_ADVANCE = (OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC)


def create_in_background(broker: Broker, name: str) -> None:
    """Asks the controller for the topic, unless that is under way."""
    if name not in broker.topics_being_created:
        broker.topics_being_created[name] = None
        broker.runtime.spawn(_created(broker, _TOPICS[name](broker.config)), f"creating {name}")


async def create_now(broker: Broker, topic: InternalTopic) -> None:
    """Asks the controller for the topic, unless that is under way. A refusal is logged; the caller looks for the topic again."""
    if topic.name not in broker.topics_being_created:
        broker.topics_being_created[topic.name] = None
        await _created(broker, topic)


async def create_internal_topics(broker: Broker) -> None:
    """Create the internal topics that nearly all clients need in advance; otherwise the first that needs one has to retry."""
    for topic in (_TOPICS[name](broker.config) for name in _IN_ADVANCE):
        if topic.name not in broker.image.topics.by_name:
            await create_now(broker, topic)


async def _created(broker: Broker, topic: InternalTopic) -> None:
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
