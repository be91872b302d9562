"""Clients of a simulated cluster: they write and transact, and note what they were told.

What they are told is all that the checkers go by: an acknowledged record must stay, a committed transaction must be whole. Each
client is a machine of its own on the network, with clocks and cuts like any other.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sim.loop import SimLoop
from sim.machines import SimRuntime
from tidelog.client.metadata import ClusterMetadata
from tidelog.client.producing import Transaction, read_produced
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tidelog.server.channels import ChannelError, Channels, Failure

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
"""A client tries again after these."""


class Later(Exception):
    """Not now: try again."""


@dataclass(frozen=True, slots=True)
class Acked:
    """A record that the cluster promised to keep. ``offset`` is -1 where none was told (a duplicate was acknowledged)."""

    at: TopicPartition
    offset: int
    value: bytes
    acked_s: float


@dataclass(slots=True)
class History:
    """What clients were told."""

    acked: list[Acked] = field(default_factory=list)
    tried: set[bytes] = field(default_factory=set)
    """Every value that was ever sent: nothing else may be found."""
    committed: dict[int, list[tuple[TopicPartition, bytes]]] = field(default_factory=dict)
    aborted: dict[int, list[tuple[TopicPartition, bytes]]] = field(default_factory=dict)
    """Transactions by number, as their client was told; those of which it does not know are in neither."""
    transactions: int = 0
    operations: int = 0
    """Acknowledged ones, of all kinds."""
    owned: dict[tuple[str, int], dict[TopicPartition, str]] = field(default_factory=dict)
    """(Group, generation): who was told that he owns a partition."""
    offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """Offsets whose commit was acknowledged, the highest of each."""
    wrong: list[str] = field(default_factory=list)
    """What a client may never be told."""


class Client:
    """A machine with connections to the cluster."""

    def __init__(self, loop: SimLoop, seed: int, bootstrap: Sequence[tuple[str, int]]) -> None:
        self.loop = loop
        self.rng = random.Random(seed)
        self.runtime = SimRuntime(loop, seed, 0)
        self.channels = Channels(self.runtime, loop.name)
        self.metadata = ClusterMetadata()
        self._bootstrap = list(bootstrap)
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}

    @property
    def now(self) -> float:
        return self.loop.agenda.now

    async def pause(self, seconds: float = PAUSE_S) -> None:
        await self.runtime.sleep(seconds * (0.5 + self.rng.random()))

    async def ask(self, where: tuple[str, int], request: Any, timeout_ms: int = ASK_MS, purpose: str = "ask") -> Any:
        """Later when there is no answer."""
        try:
            return await self.channels.to(*where, purpose).ask(request, timeout_ms=timeout_ms)
        except ChannelError as error:
            assert error.kind is not Failure.UNSUPPORTED, error
            raise Later(str(error)) from None

    async def ask_any(self, request: Any, timeout_ms: int = ASK_MS) -> Any:
        """Of some broker."""
        known = sorted(self.metadata.brokers.values()) or self._bootstrap
        return await self.ask(self.rng.choice([*known, *self._bootstrap]), request, timeout_ms)

    async def refresh(self, *topics: str) -> None:
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        self.metadata.update(await self.ask_any(MetadataRequest(topics=wanted, allow_auto_topic_creation=False)))

    async def leader(self, at: TopicPartition) -> tuple[str, int]:
        """Where the partition's leader listens."""
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

    def forget(self, kind: int, key: str) -> None:
        """Whoever coordinated it does not any more."""
        self._coordinators.pop((kind, key), None)

    async def until(self, attempt: Callable[[], Awaitable[Any]], stop: Callable[[], bool], on_later: Callable[[], object]) -> Any:
        """What ``attempt`` comes to in the end; None when ``stop`` says so first."""
        while not stop():
            try:
                return await attempt()
            except Later:
                on_later()
                await self.pause()
        return None


def check(code: int, what: str) -> None:
    """Later for what passes; AssertionError for what should not happen to a well-behaved client."""
    if code == ErrorCode.NONE:
        return
    error = ErrorCode(code)
    if error in PASSING:
        raise Later(f"{what}: {error.name}")
    raise AssertionError(f"{what}: {error.name}")


class Writer:
    """An idempotent producer: each batch again and again until it is acknowledged."""

    def __init__(self, client: Client, history: History, name: str, partitions: Sequence[TopicPartition]) -> None:
        self.client, self.history, self.name = client, history, name
        self.partitions = list(partitions)
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._count = 0

    async def run(self, stop: Callable[[], bool], pace_s: float) -> None:
        client, rng = self.client, self.client.rng
        await client.until(self._init, stop, lambda: None)
        while not stop():
            at = rng.choice(self.partitions)
            values = [b"%s-%d" % (self.name.encode(), self._count + i) for i in range(rng.randint(1, 4))]
            self._count += len(values)
            self.history.tried.update(values)
            # A batch that was begun is seen through to its end: the next sequence depends on it.
            await client.until(partial(self._write, at, values), lambda: False, partial(self._lost, at))
            await client.pause(pace_s)

    def _lost(self, at: TopicPartition) -> None:
        self.client.metadata.topics.pop(at.topic, None)

    async def _init(self) -> None:
        response = await self.client.ask_any(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000))
        check(response.error_code, "InitProducerId")
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch

    async def _write(self, at: TopicPartition, values: Sequence[bytes]) -> None:
        sequence = self._sequences.get(at, 0)
        records = [RecordData(None, value, self.client.runtime.now_ms()) for value in values]
        batch = build_batch(records, producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=sequence)
        where = await self.client.leader(at)
        topic = self.client.metadata.topics[at.topic]
        part = PartitionProduceData(index=at.partition, records=batch)
        data = TopicProduceData(name=at.topic, topic_id=topic.topic_id, partition_data=[part])
        response = await self.client.ask(where, ProduceRequest(acks=-1, timeout_ms=3000, topic_data=[data]))
        (answer,) = response.responses[0].partition_responses
        offset = answer.base_offset
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            offset = -1
        elif answer.error_code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            # Everything before it was acknowledged to us: so the cluster has lost some of it.
            self.history.wrong.append(f"{self.name} at {at}: {ErrorCode(answer.error_code).name} at sequence {sequence}")
            raise Later("it is lost")
        else:
            check(answer.error_code, f"Produce to {at}")
        for delta, value in enumerate(values):
            self.history.acked.append(Acked(at, offset + delta if offset >= 0 else -1, value, self.client.now))
        self._sequences[at] = sequence + len(values)
        self.history.operations += 1


class Transactor:
    """Transactions over several partitions, some committed, some aborted, some left alone for their successor to end."""

    def __init__(self, client: Client, history: History, name: str, partitions: Sequence[TopicPartition]) -> None:
        self.client, self.history, self.name = client, history, name
        self.partitions = list(partitions)

    async def run(self, stop: Callable[[], bool], pace_s: float) -> None:
        while not stop():
            try:
                await self._one(stop)
            except Later:
                self.client.forget(TRANSACTION, self.name)
            await self.client.pause(pace_s)

    async def _one(self, stop: Callable[[], bool]) -> None:
        client, rng, history = self.client, self.client.rng, self.history
        transaction = Transaction(self.name, 20_000, implicit=True)
        code = transaction.began(await self._coordinator(transaction.begin_request()))
        check(code, "InitProducerId")
        number = history.transactions
        history.transactions += 1
        written: list[tuple[TopicPartition, bytes]] = []
        alive = True
        for at in rng.sample(self.partitions, rng.randint(1, min(3, len(self.partitions)))):
            if not transaction.open:
                break
            value = b"%s-%d-%d" % (self.name.encode(), number, len(written))
            history.tried.add(value)
            batch = transaction.stamped(at, build_batch([RecordData(None, value, client.runtime.now_ms())]))
            write, lost = partial(self._write, transaction, at, batch), partial(self._lost, at)
            alive = alive and bool(await client.until(write, stop, lost))
            written.append((at, value))
        fate = rng.random()
        if fate < 0.1 or stop():
            return
        if transaction.over:
            return
        commit = alive and transaction.open and fate < 0.7
        ended = await client.until(lambda: self._end(transaction, commit), stop, lambda: client.forget(TRANSACTION, self.name))
        if ended is ErrorCode.NONE:
            (history.committed if commit else history.aborted)[number] = written
            history.operations += 1

    async def _coordinator(self, request: Any) -> Any:
        return await self.client.ask(await self.client.coordinator(TRANSACTION, self.name), request)

    def _lost(self, at: TopicPartition) -> None:
        self.client.metadata.topics.pop(at.topic, None)

    async def _write(self, transaction: Transaction, at: TopicPartition, batch: bytearray) -> bool:
        """Whether it is there; False when the transaction is lost."""
        where = await self.client.leader(at)
        request = transaction.produce_request({at: bytes(batch)}, 3000)
        request.topic_data[0].topic_id = self.client.metadata.topics[at.topic].topic_id
        response = await self.client.ask(where, request)
        response.responses[0].name = at.topic
        found = transaction.produced(read_produced(response, [at])[at])
        if found in PASSING:
            raise Later(found.name)
        return found in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)

    async def _end(self, transaction: Transaction, commit: bool) -> ErrorCode:
        found = transaction.ended(await self._coordinator(transaction.end_request(commit)))
        if found in PASSING:
            raise Later(found.name)
        return found
