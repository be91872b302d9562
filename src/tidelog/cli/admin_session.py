"""What administration commands ask of a cluster, each request to the broker that can answer it.

A session begins with one connection; connections to other brokers are made when a partition's leader or a group's coordinator
is there. Everything ends with the session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from tidelog.cli.broker_connection import BrokerConnection
from tidelog.cli.refusal import CommandFailed, check, error_text
from tidelog.config.listeners import address_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from tidelog.protocol.structure import Message

T = TypeVar("T")
Partition = tuple[str, int]
"""Topic and partition."""
SEVERAL_COORDINATORS_FROM = 4
GROUP, TRANSACTION = 0, 1
"""Kinds of keys that coordinators are found by."""
RETRY_S = 0.1
_COORDINATOR_PASSES = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


class AdminSession:
    """A context manager."""

    def __init__(self, bootstrap: str, command_config: str | None = None, client_id: str = "adminclient-1") -> None:
        """``command_config``: a properties file, as Kafka's tools take it. CannotConnect when no broker answers."""
        self._first = BrokerConnection(bootstrap, command_config, client_id)
        self._command_config = command_config
        self._client_id = client_id
        self._connections: dict[int, BrokerConnection] = {}
        self._brokers: dict[int, MetadataResponseBroker] = {}
        self.timeout_ms = self._first.timeout_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in (self._first, *self._connections.values()):
            connection.__exit__(kind, error, trace)

    def ask(self, request: Message) -> Any:
        """The answer of any broker."""
        return self._first.ask(request)

    def version_of(self, api_key: int) -> int:
        """The version at which requests of this API go to the first broker."""
        return self._first.version_of(api_key)

    def connection(self, broker_id: int) -> BrokerConnection:
        """The connection to that broker. CommandFailed when the cluster has none of that id."""
        if broker_id not in self._connections:
            broker = self.brokers().get(broker_id)
            if broker is None:
                raise CommandFailed(f"The cluster has no broker {broker_id}; it has {', '.join(map(str, self.brokers()))}.")
            address = address_text(broker.host, broker.port)
            self._connections[broker_id] = BrokerConnection(address, self._command_config, self._client_id)
        return self._connections[broker_id]

    def forget_connections(self) -> None:
        """Connect anew to brokers from now on, but for the first."""
        for connection in self._connections.values():
            connection.__exit__(None, None, None)
        self._connections.clear()

    def brokers(self) -> dict[int, MetadataResponseBroker]:
        """The brokers that are there, by id."""
        if not self._brokers:
            self.metadata([])
        return self._brokers

    def metadata(self, topics: Iterable[str] | None) -> list[MetadataResponseTopic]:
        """These topics, or all of them, by name; those that are not there have an error code. None is created."""
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        response: MetadataResponse = self.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        check(response.error_code)
        self._brokers = {broker.node_id: broker for broker in sorted(response.brokers, key=lambda each: each.node_id)}
        return sorted(response.topics, key=lambda topic: topic.name or "")

    def partitions(self, topic: str) -> list[Partition]:
        """All partitions of a topic. CommandFailed when it is not there."""
        (found,) = self.metadata([topic])
        if found.error_code != ErrorCode.NONE:
            raise CommandFailed(f"Topic {topic}: {error_text(found.error_code)}")
        return sorted((topic, partition.partition_index) for partition in found.partitions)

    def leaders(self, topics: Iterable[str]) -> dict[Partition, int]:
        """The leader of each partition that has one."""
        return {
            (topic.name or "", partition.partition_index): partition.leader_id
            for topic in self.metadata(sorted(set(topics)))
            for partition in topic.partitions
            if partition.leader_id != NO_BROKER
        }

    def list_offsets(self, wanted: dict[Partition, int], *, isolation_level: int = 0) -> dict[Partition, Any]:
        """The answer for each partition, by a timestamp in ms or one of the special ones; each leader is asked once.

        Partitions without a leader are missing.
        """
        leaders = self.leaders(topic for topic, _ in wanted)
        by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
        for (topic, index), timestamp in wanted.items():
            leader = leaders.get((topic, index))
            if leader is not None:
                part = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                by_leader.setdefault(leader, {}).setdefault(topic, []).append(part)
        found: dict[Partition, Any] = {}
        for leader, topics in by_leader.items():
            response = self.connection(leader).ask(
                ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=isolation_level,
                    topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
                    timeout_ms=self.timeout_ms,
                )
            )
            found.update({(topic.name, part.partition_index): part for topic in response.topics for part in topic.partitions})
        return found

    def coordinator(self, key: str, key_type: int = GROUP) -> tuple[int, str, int]:
        """Id, host and port of the coordinator of a group or a transactional id. CommandFailed when there is none in time."""

        def find() -> Any:
            if self._first.version_of(FindCoordinatorRequest.API_KEY) >= SEVERAL_COORDINATORS_FROM:
                return self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])).coordinators[0]
            return self.ask(FindCoordinatorRequest(key=key, key_type=key_type))

        answer = self.until_settled(find, lambda found: found.error_code)
        check(answer.error_code, answer.error_message)
        return answer.node_id, answer.host, answer.port

    def ask_coordinator(self, key: str, request: Message, code_of: Callable[[Any], int], key_type: int = GROUP) -> Any:
        """The answer of the coordinator of a group, or a transactional id, asked again while it moves or loads."""

        def ask() -> Any:
            return self.connection(self.coordinator(key, key_type)[0]).ask(request)

        return self.until_settled(ask, code_of)

    def until_settled(self, ask: Callable[[], T], code_of: Callable[[T], int]) -> T:
        """Ask until the answer is not that a coordinator is on its way, or the time is up."""
        deadline = time.monotonic() + self.timeout_ms / 1000
        while True:
            answer = ask()
            if code_of(answer) not in _COORDINATOR_PASSES or time.monotonic() >= deadline:
                return answer
            time.sleep(RETRY_S)
