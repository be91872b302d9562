"""Admin requests of commands, each sent to the node that can answer it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from tidelog.cli.broker_connection import Session, client_settings
from tidelog.cli.refusal import CommandFailed, error_text
from tidelog.client.admin import topics as topics_calls
from tidelog.client.calls import GROUP, TRANSACTION, Ask, Call, Coordinator, Locate, Node, Partition
from tidelog.client.routing import PASSING
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.metadata import MetadataResponseBroker, MetadataResponseTopic
from tidelog.protocol.structure import Message

__all__ = ["GROUP", "TRANSACTION", "AdminSession", "NodeConnection", "Partition"]

T = TypeVar("T")
RETRY_S = 0.1


class NodeConnection:
    """One node of a session's cluster."""

    def __init__(self, session: AdminSession, node_id: int) -> None:
        self._session = session
        self._to = Node(node_id)
        self.timeout_ms = session.timeout_ms

    def ask(self, request: Message) -> Any:
        """The response of this node."""
        return self._session.ask(request, self._to)

    def version_of(self, api_key: int) -> int:
        """The version used for requests of this API to this node."""
        return self._session.version_of(api_key, self._to)


class AdminSession(Session):
    """A session with brokers."""

    def __init__(
        self, bootstrap: str, command_config: str | None = None, client_id: str = "adminclient-1", patience_ms: int | None = None
    ) -> None:
        """As ``BrokerConnection``. ``patience_ms``: how long at most transient errors are retried, if that is less than the
        settings say."""
        settings = client_settings(bootstrap, command_config, client_id)
        if patience_ms is not None:
            settings = replace(settings, api_timeout_ms=min(settings.api_timeout_ms, patience_ms))
        super().__init__(settings)
        self._brokers: dict[int, MetadataResponseBroker] = {}

    def connection(self, broker_id: int) -> NodeConnection:
        """The connection to that broker. CommandFailed when the cluster has no broker with that id."""
        self.version_of(ApiKey.API_VERSIONS, Node(broker_id))
        return NodeConnection(self, broker_id)

    def forget_connections(self) -> None:
        """Closes the connections to brokers; the next request to each opens a new one."""
        self._client.connections.close()

    def brokers(self) -> dict[int, MetadataResponseBroker]:
        """The live brokers, by id."""
        if not self._brokers:
            self._brokers = self.run(topics_calls.brokers())
        return self._brokers

    def metadata(self, topics: Iterable[str] | None) -> list[MetadataResponseTopic]:
        """These topics, or all of them, by name; unknown topics have an error code. Creates none."""
        response = self.run(topics_calls.metadata(topics))
        self._brokers = {broker.node_id: broker for broker in sorted(response.brokers, key=lambda each: each.node_id)}
        return sorted(response.topics, key=lambda topic: topic.name or "")

    def partitions(self, topic: str) -> list[Partition]:
        """All partitions of a topic. CommandFailed when it does not exist."""
        (found,) = self.metadata([topic])
        if found.error_code != ErrorCode.NONE:
            raise CommandFailed(f"Topic {topic}: {error_text(found.error_code)}")
        return sorted((topic, partition.partition_index) for partition in found.partitions)

    def leaders(self, topics: Iterable[str]) -> dict[Partition, int]:
        """The leader of each partition that has one."""
        return self.run(topics_calls.leaders(topics))

    def list_offsets(self, wanted: dict[Partition, int], *, isolation_level: int = 0) -> dict[Partition, Any]:
        """The offset of each partition, by a timestamp in ms or a special one; each leader gets one request.

        Partitions without a leader are left out.
        """
        return self.run(topics_calls.list_offsets(wanted, isolation_level, self.timeout_ms))

    def coordinator(self, key: str, key_type: int = GROUP) -> tuple[int, str, int]:
        """Id, host and port of the coordinator of a group or a transactional id. CommandFailed when none is found in time."""
        return self.run(_located(Coordinator(key, key_type)))

    def ask_coordinator(self, key: str, request: Message, code_of: Callable[[Any], int], key_type: int = GROUP) -> Any:
        """The response of the coordinator of a group or a transactional id; retries while it moves or loads."""
        return self.run(_asked(Ask(request, Coordinator(key, key_type), code_of=code_of)))

    def until_settled(self, ask: Callable[[], T], code_of: Callable[[T], int]) -> T:
        """Repeats the request while the coordinator moves or loads, until the timeout."""
        deadline = time.monotonic() + self.timeout_ms / 1000
        while True:
            answer = ask()
            if code_of(answer) not in PASSING or time.monotonic() >= deadline:
                return answer
            time.sleep(RETRY_S)


def _located(coordinator: Coordinator) -> Call[tuple[int, str, int]]:
    found: tuple[int, str, int] = yield Locate(coordinator)
    return found


def _asked(step: Ask) -> Call[Any]:
    return (yield step)
