"""A client of a simulated cluster that sends the protocol's own messages, and retries where clients do."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tidelog.client.metadata import ClusterMetadata
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.server.cluster.channels import ChannelError, Channels, Failure
from tidelog.server.cluster.node_login import PLAIN_TEXT, NodeLogin
from tidelog.testing.simulation.loop import SimLoop
from tidelog.testing.simulation.machines import SimRuntime

ASK_MS = 5_000
PAUSE_S = 0.1
GROUP, TRANSACTION = 0, 1
PASSING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.INVALID_REPLICATION_FACTOR,
    }
)
"""Errors after which a client retries."""


class Later(Exception):
    """Not now: try again."""


class Client:
    """A machine with connections to the cluster."""

    def __init__(self, loop: SimLoop, seed: int, bootstrap: Sequence[tuple[str, int]], login: NodeLogin = PLAIN_TEXT) -> None:
        self.loop = loop
        self.rng = random.Random(seed)
        self.runtime = SimRuntime(loop, seed, 0)
        self.channels = Channels(self.runtime, loop.name, login)
        self.metadata = ClusterMetadata()
        self._bootstrap = list(bootstrap)
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}

    @property
    def now(self) -> float:
        return self.loop.agenda.now

    async def pause(self, seconds: float = PAUSE_S) -> None:
        await self.runtime.sleep(seconds * (0.5 + self.rng.random()))

    async def ask(self, where: tuple[str, int], request: Any, timeout_ms: int = ASK_MS, purpose: str = "ask") -> Any:
        """Send a request. Later when there is no answer."""
        try:
            return await self.channels.to(*where, purpose).ask(request, timeout_ms=timeout_ms)
        except ChannelError as error:
            assert error.kind is not Failure.UNSUPPORTED, error
            raise Later(str(error)) from None

    async def ask_any(self, request: Any, timeout_ms: int = ASK_MS) -> Any:
        """Ask any broker."""
        known = sorted(self.metadata.brokers.values()) or self._bootstrap
        return await self.ask(self.rng.choice([*known, *self._bootstrap]), request, timeout_ms)

    async def refresh(self, *topics: str) -> None:
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        self.metadata.update(await self.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=False)))

    async def leader(self, at: TopicPartition) -> tuple[str, int]:
        """The address of the partition's leader."""
        found = self.metadata.leader(at.topic, at.partition)
        if found is None or found.broker not in self.metadata.brokers:
            await self.refresh(at.topic)
            found = self.metadata.leader(at.topic, at.partition)
        if found is None or found.broker not in self.metadata.brokers:
            raise Later(f"{at} has no leader")
        return self.metadata.brokers[found.broker]

    async def coordinator(self, kind: int, key: str) -> tuple[str, int]:
        found = self._coordinators.get((kind, key))
        if found is None:
            response = await self.ask_any(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
            (row,) = response.coordinators
            if row.error_code:
                raise Later(f"no coordinator of {key}: {row.error_code}")
            found = self._coordinators[kind, key] = (row.host, row.port)
        return found

    def lost(self, at: TopicPartition) -> None:
        """The leader may have changed: fetch metadata again."""
        self.metadata.topics.pop(at.topic, None)

    def forget(self, kind: int, key: str) -> None:
        """The coordinator may have changed."""
        self._coordinators.pop((kind, key), None)

    async def until(self, attempt: Callable[[], Awaitable[Any]], stop: Callable[[], bool], on_later: Callable[[], object]) -> Any:
        """The result of ``attempt`` once it succeeds; None when ``stop`` ends the retries first."""
        while not stop():
            try:
                return await attempt()
            except Later:
                on_later()
                await self.pause()
        return None


def check(code: int, what: str) -> None:
    """Later for errors that pass; AssertionError for an error that a correct client does not get."""
    if code == ErrorCode.NONE:
        return
    error = ErrorCode(code)
    if error in PASSING:
        raise Later(f"{what}: {error.name}")
    raise AssertionError(f"{what}: {error.name}")
