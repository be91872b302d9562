"""Clients of a simulated cluster: they write and transact, and note what they were told.

What they are told is all that the checkers go by: an acknowledged record must stay, a committed transaction must be whole. Each
client is a machine of its own on the network, with clocks and cuts like any other.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tidelog.client.producing import Transaction, read_produced
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.testing.simulation.client import PASSING, TRANSACTION, Client, Later, check
from tidelog.testing.simulation.producing import Lost, Producer


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
    given_up: set[bytes] = field(default_factory=set)
    """Values of aborted transactions."""
    transactions: int = 0
    operations: int = 0
    """Acknowledged ones, of all kinds."""
    owned: dict[tuple[str, int], dict[TopicPartition, str]] = field(default_factory=dict)
    """(Group, generation): who was told that he owns a partition."""
    offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """Offsets whose commit was acknowledged, the highest of each."""
    seen: dict[TopicPartition, dict[int, bytes]] = field(default_factory=dict)
    """What readers found, by offset: it stays."""
    rare: collections.Counter[str] = field(default_factory=collections.Counter)
    """Branches reached that most runs never take."""
    wrong: list[str] = field(default_factory=list)
    """What a client may never be told."""


class Writer:
    """An idempotent producer: each batch again and again until it is acknowledged."""

    def __init__(self, client: Client, history: History, name: str, partitions: Sequence[TopicPartition]) -> None:
        self.client, self.history, self.name = client, history, name
        self.partitions = list(partitions)
        self._producer = Producer(client)
        self._count = 0

    async def run(self, stop: Callable[[], bool], pace_s: float) -> None:
        rng = self.client.rng
        while not stop():
            at = rng.choice(self.partitions)
            values = [b"%s-%d" % (self.name.encode(), self._count + i) for i in range(rng.randint(1, 4))]
            self._count += len(values)
            self.history.tried.update(values)
            try:
                # A batch that was begun is seen through to its end: the next sequence depends on it.
                offset = await self._producer.send(at, [(None, value) for value in values])
            except Lost as lost:
                self.history.wrong.append(f"{self.name}: {lost}")
                return
            assert offset is not None
            for delta, value in enumerate(values):
                self.history.acked.append(Acked(at, offset + delta if offset >= 0 else -1, value, self.client.now))
            self.history.operations += 1
            await self.client.pause(pace_s)


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
            write, lost = partial(self._write, transaction, at, batch), partial(client.lost, at)
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
            history.given_up.update(() if commit else (value for _, value in written))
            history.operations += 1

    async def _coordinator(self, request: Any) -> Any:
        return await self.client.ask(await self.client.coordinator(TRANSACTION, self.name), request)

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
