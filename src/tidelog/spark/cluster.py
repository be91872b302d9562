"""A Kafka cluster as a reader sees it: topics, offsets, and a connection to the leader of a partition.

After an error that passes (a broker that restarts, a leader that moves, an election) a request is repeated with growing pauses
until ``default.api.timeout.ms`` is over; then the error states the last problem. Not thread-safe: one per thread.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection
from tidelog.client.fetching import Verdict, judge, list_offsets_request, read_offsets
from tidelog.client.metadata import ClusterMetadata, Leader, Topic
from tidelog.client.net.blocking import BrokerSocket, Connections
from tidelog.client.routing import Pauses
from tidelog.client.settings import READ_UNCOMMITTED, ClientSettings
from tidelog.model.errors import ConfigError, ErrorCode, ProtocolViolation
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.structure import Message
from tidelog.spark.rights import READ, acl_needed

T = TypeVar("T")
_SPREAD = random.Random()


class ClusterUnavailable(Exception):
    """The cluster did not answer in time; the text has the last problem and which setting says how long to try."""


class TopicMissing(Exception):
    """A topic or partition does not exist, or may not be read."""


class _Again(Exception):
    """An error that passes."""


class Cluster:
    """Opens connections on demand and keeps them."""

    def __init__(self, settings: ClientSettings, now: Callable[[], float] = time.monotonic, operation: str = READ) -> None:
        """``operation``: what its topics are for; an error names it when an ACL is missing."""
        self._settings = settings
        self._now = now
        self._operation = operation
        self._connections = Connections(settings)
        self.metadata = ClusterMetadata()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def topics(self, names: tuple[str, ...] | None, pattern: str | None = None) -> dict[str, Topic]:
        """The topics with these names, or whose whole name the pattern matches, as they are now.

        TopicMissing when a named one does not exist or may not be read; a pattern may match nothing, and never internal topics.
        """
        if names is None:
            self._retried("ask for the topics", lambda: self._refresh(None))
            fits = re.compile(pattern or "")
            return {
                name: topic
                for name, topic in sorted(self.metadata.topics.items())
                if fits.fullmatch(name) and not topic.internal and topic.error == ErrorCode.NONE
            }
        self._retried(f"describe {', '.join(names)}", lambda: self._described(names))
        return {name: self.metadata.topics[name] for name in names}

    def offsets(self, wanted: Mapping[TopicPartition, int], isolation_level: int = READ_UNCOMMITTED) -> dict[TopicPartition, int]:
        """The offset at a timestamp (or one of the special ones) for each partition; -1 when all records are older."""
        found: dict[TopicPartition, int] = {}
        self._retried("list offsets", lambda: self._list(wanted, isolation_level, found))
        return {at: found[at] for at in wanted}

    def leader_socket(self, at: TopicPartition, hint: tuple[Leader, str, int] | None = None) -> tuple[BrokerSocket, Leader]:
        """A connection to the leader of a partition. ``hint``: the leader when the batch was planned."""
        if hint is not None:
            try:
                return self.socket_at((hint[1], hint[2])), hint[0]
            except NoConnection:
                pass  # It may have moved: ask the cluster.
        return self._retried(f"reach the leader of {at}", lambda: self._leader_socket(at))

    def broker_socket(self, broker: int) -> BrokerSocket:
        """A connection to a broker by its id. NoConnection when it is unknown or does not answer."""
        address = self.metadata.brokers.get(broker)
        if address is None:
            raise NoConnection(f"broker {broker} is not known")
        return self.socket_at(address)

    def socket_at(self, address: tuple[str, int]) -> BrokerSocket:
        """A connection to this host and port. NoConnection when nothing answers there."""
        return self._connections.at(address)

    def any_socket(self) -> BrokerSocket:
        """A connection to some broker. NoConnection when none answers."""
        problems = []
        addresses = dict.fromkeys([*self._connections.addresses, *self.metadata.brokers.values(), *self._settings.bootstrap])
        for address in addresses:
            try:
                return self.socket_at(address)
            except NoConnection as error:
                problems.append(str(error))
        raise NoConnection("; ".join(problems))

    def ask(self, connection: BrokerSocket, request: Message, highest: int | None = None) -> Any:
        """The response to ``request``. Without a response the connection is dropped; the next attempt opens another."""
        return self._connections.ask(connection, request, highest)

    def unknown_leaders(self) -> None:
        """The cached leaders were wrong: fetch them again when they are needed."""
        self.metadata.topics.clear()

    def topic_now(self, name: str) -> Topic | None:
        """The topic as it is now; None if it does not exist."""
        self._retried(f"describe {name}", lambda: self._refresh((name,)))
        topic = self.metadata.topics.get(name)
        return None if topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else topic

    def hint(self, at: TopicPartition) -> tuple[Leader, str, int] | None:
        """The leader of the partition, if it is cached."""
        leader = self.metadata.leader(at.topic, at.partition)
        address = None if leader is None else self.metadata.brokers.get(leader.broker)
        return None if leader is None or address is None else (leader, *address)

    def forget(self, connection: BrokerSocket) -> None:
        """Drop a connection that ended, or whose broker is unusable for now."""
        self._connections.forget(connection)

    def pauses(self, limit_ms: int, first_ms: int | None = None) -> Iterator[str]:
        """Growing pauses between attempts (from ``first_ms``) until ``limit_ms`` are over. Yields before each attempt."""
        pauses = Pauses(self._settings, limit_ms, self._now, _SPREAD, first_ms)
        while True:
            yield ""
            pause = pauses.next()
            if pause is None:
                return
            time.sleep(pause)

    def _retried(self, what: str, attempt: Callable[[], T]) -> T:
        problem = ""
        for _ in self.pauses(self._settings.api_timeout_ms):
            try:
                return attempt()
            except (_Again, NoConnection) as error:
                problem = str(error)
        raise ClusterUnavailable(
            f"Could not {what} within {self._settings.api_timeout_ms} ms (kafka.default.api.timeout.ms). Last problem: {problem}."
        )

    def _refresh(self, names: tuple[str, ...] | None) -> None:
        connection = self.any_socket()
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        response = self.ask(connection, MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        if not response.brokers:
            raise _Again(f"{connection.address} does not know any broker yet")
        self.metadata.update(response, all_topics=names is None)

    def _described(self, names: tuple[str, ...]) -> None:
        self._refresh(names)
        for name in names:
            topic = self.metadata.topics.get(name)
            if topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise TopicMissing(f"There is no topic {name!r} on this cluster. Create it, or name another one.")
            if topic.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise self._not_allowed(f"The topic {name!r} cannot be used", name)
            if topic.error == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise TopicMissing(f"The topic {name!r} cannot be read: {topic.error.text}")
            if topic.error != ErrorCode.NONE or not topic.leaders:
                raise _Again(f"topic {name}: {topic.error.name}")

    def _not_allowed(self, what: str, topic: str) -> TopicMissing:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return TopicMissing(f"{what}: {error.name}. {acl_needed(self._settings, self._operation, topic)}")

    def _leader_socket(self, at: TopicPartition) -> tuple[BrokerSocket, Leader]:
        self._refresh((at.topic,))
        return self._known_leader(at)

    def _known_leader(self, at: TopicPartition) -> tuple[BrokerSocket, Leader]:
        topic = self.metadata.topics.get(at.topic)
        if topic is not None and topic.error == ErrorCode.NONE and at.partition not in topic.leaders:
            raise TopicMissing(f"The topic {at.topic} has {len(topic.leaders)} partitions, and {at.partition} is not among them.")
        leader = self.metadata.leader(at.topic, at.partition)
        if leader is None or leader.broker not in self.metadata.brokers:
            raise _Again(f"{at} has no leader")
        return self.socket_at(self.metadata.brokers[leader.broker]), leader

    def _list(self, wanted: Mapping[TopicPartition, int], isolation_level: int, found: dict[TopicPartition, int]) -> None:
        missing = [at for at in wanted if at not in found]
        names = tuple(sorted({at.topic for at in missing}))
        if found or any(self.metadata.leader(at.topic, at.partition) is None for at in missing):
            self._refresh(names)
        by_broker: dict[int, tuple[BrokerSocket, dict[TopicPartition, tuple[int, int]]]] = {}
        for at in missing:
            connection, leader = self._known_leader(at)
            by_broker.setdefault(leader.broker, (connection, {}))[1][at] = (wanted[at], leader.epoch)
        problem: Exception | None = None
        for connection, asked in by_broker.values():
            try:
                self._list_at(connection, asked, isolation_level, found)
            except (_Again, NoConnection) as error:
                problem = error
        if problem is not None:
            self._refresh(names)
            raise problem

    def _list_at(
        self,
        connection: BrokerSocket,
        asked: dict[TopicPartition, tuple[int, int]],
        isolation_level: int,
        found: dict[TopicPartition, int],
    ) -> None:
        try:
            response = self.ask(connection, list_offsets_request(asked, isolation_level, self._settings.answer_timeout_ms))
            answers = read_offsets(response, asked)
        except (ProtocolViolation, UnsupportedByBroker) as error:
            raise ConfigError(f"{connection.address} does not answer ListOffsets: {error}.") from error
        waiting: list[str] = []
        for at, (code, offset) in answers.items():
            if code == ErrorCode.NONE:
                found[at] = offset
            elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise self._not_allowed(f"The offsets of {at} are not available", at.topic)
            elif judge(code) in (Verdict.FAIL, Verdict.OUT_OF_RANGE):
                raise TopicMissing(f"The offsets of {at} are not available: {code.text}")
            else:
                waiting.append(f"{at}: {code.name}")
        if waiting:
            raise _Again("; ".join(waiting))
