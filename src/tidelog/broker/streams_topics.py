"""Internal topics of streams groups, which brokers create for the client that needs them (KIP-1071).

A heartbeat never waits for them: the controller is asked in the background, with the client's principal, and the group finds the
topics in a later image. A topic that is being created is not asked for again; neither is one that was refused, for two heartbeat
intervals, in which the group's members learn why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidelog.broker.ports import Asker, Node
from tidelog.broker.quotas.mutations import submit_for
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from tidelog.coordinator.group.streams.topology import InternalTopic

log = logging.getLogger(__name__)

MAX_REFUSED = 1000
"""Refused topics to remember; the oldest are dropped first."""


class InternalStreamsTopics:
    """What one broker creates."""

    __slots__ = ("_in_flight", "_refused")

    def __init__(self) -> None:
        self._in_flight: set[str] = set()
        self._refused: dict[str, tuple[int, str]] = {}
        """Topic -> until when it is remembered, in ``even_ms``, and why."""

    def create(self, node: Node, asker: Asker, topics: Mapping[str, InternalTopic], remember_ms: int) -> None:
        """Asks for the topics in the background, but for those that are under way or were refused lately."""
        now_ms = node.runtime.even_ms()
        refused = self.refused(topics, now_ms)
        wanted = {name: topic for name, topic in topics.items() if name not in self._in_flight and name not in refused}
        if wanted:
            self._in_flight.update(wanted)
            node.runtime.spawn(self._create(node, asker, wanted, remember_ms), "creating topics of a streams group")

    def refused(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """Why topics were not created lately."""
        known = ((name, self._refused[name]) for name in names if name in self._refused)
        return {name: why for name, (until_ms, why) in known if now_ms < until_ms}

    async def _create(self, node: Node, asker: Asker, topics: Mapping[str, InternalTopic], remember_ms: int) -> None:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics.values()], timeout_ms=node.config.request_timeout_ms
        )
        try:
            response: CreateTopicsResponse = await submit_for(
                node, asker, QuorumController.create_topics, request, version=None, strict=True
            )
            outcomes = {each.name: (ErrorCode(each.error_code), each.error_message) for each in response.topics}
        except KafkaError as error:
            outcomes = dict.fromkeys(topics, (error.code, error.detail))
        finally:
            self._in_flight.difference_update(topics)
        until_ms = node.runtime.even_ms() + remember_ms
        for name, (code, message) in outcomes.items():
            self._refused.pop(name, None)
            if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                continue
            why = message or code.text
            self._refused[name] = (until_ms, why)
            log.warning(
                "topic %s of a streams group, for client %s, is not created: %s: %s", name, asker.client_id, code.name, why
            )
            if len(self._refused) > MAX_REFUSED:
                del self._refused[next(iter(self._refused))]


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
