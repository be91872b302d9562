"""Topics that the controller creates because a client asked a broker for their metadata (``auto.create.topics.enable``).

Partitions and replicas come from the broker's configuration if it sets them, otherwise from the controller's; ``num.partitions``
and ``default.replication.factor`` are independent, as in Apache Kafka 4.3.1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tidelog.broker.node import Broker
from tidelog.broker.ports import Asker
from tidelog.broker.quotas.mutations import submit_for
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

TIMEOUT_MS = 30_000
RETRY_MS = 1_000
"""Back-off after a refusal; clients ask again every 100 ms."""
MAX_REFUSED = 1000
"""Refused topics to remember; the oldest are dropped first."""
_DEFAULT = -1
"""The controller's default."""

log = logging.getLogger(__name__)


def was_refused(broker: Broker, name: str) -> bool:
    """Whether the last attempt to create this topic failed."""
    return name in broker.auto_creations_refused


def create_for(broker: Broker, asker: Asker, names: list[str]) -> None:
    """Create the topics that are not being created already and were not refused within the last second."""
    now_ms = broker.runtime.even_ms()
    new = [
        name
        for name in names
        if name not in broker.topics_being_created and broker.auto_creations_refused.get(name, now_ms) <= now_ms
    ]
    if new:
        broker.topics_being_created.update(dict.fromkeys(new))
        broker.runtime.spawn(_created(broker, asker, new), "creating topics that clients asked for")


async def _created(broker: Broker, asker: Asker, names: list[str]) -> None:
    """Ask the controller. The client was answered LEADER_NOT_AVAILABLE and learns the outcome when it asks again."""
    partitions = _named(broker, "num.partitions", broker.config.num_partitions)
    replicas = _named(broker, "default.replication.factor", broker.config.default_replication_factor)
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas) for name in names],
        timeout_ms=TIMEOUT_MS,
    )
    try:
        response: CreateTopicsResponse = await submit_for(
            broker, asker, QuorumController.create_topics, request, version=None, strict=True
        )
    except KafkaError as error:
        _note(broker, asker, dict.fromkeys(names, (error.code, error.detail)))
        return
    finally:
        for name in names:
            broker.topics_being_created.pop(name, None)
    _note(broker, asker, {topic.name: (ErrorCode(topic.error_code), topic.error_message) for topic in response.topics})


def _named(broker: Broker, setting: str, value: int) -> int:
    return value if setting in broker.config.static else _DEFAULT


def _note(broker: Broker, asker: Asker, outcomes: Mapping[str, tuple[ErrorCode, str | None]]) -> None:
    """Record the refused topics. After a quota violation there is no back-off, so that one client's quota does not delay
    another client."""
    refused = broker.auto_creations_refused
    for name, (code, message) in outcomes.items():
        known = refused.pop(name, None) is not None
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            continue
        if not known:
            why = f"{code.name}: {message or code.text}"
            log.warning("topic %s, which client %s at %s asked for, is not created: %s", name, asker.client_id, asker.host, why)
        pause_ms = 0 if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED else RETRY_MS
        refused[name] = broker.runtime.even_ms() + pause_ms
        if len(refused) > MAX_REFUSED:
            del refused[next(iter(refused))]
