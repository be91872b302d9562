"""Clients of a simulated cluster whose rights come and go: they write, read with long polls and in fetch sessions, and log in.

Each answer is compared with what the answering process had read of the metadata before the request was sent: nothing is
acknowledged, read or let in that was refused by then, and nothing refused that was allowed. A record that was written after
its reader's right had ended does not reach the reader, however long its fetch has waited. One ACL covers both topics, so
one request is allowed or refused as a whole.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sim.clients import History
from sim.guarded_state import LOGIN, READ, TOPICS, USER, WRITE, GuardedState
from tidelog.client.connection import ClientConnection
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Line
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.batch import CorruptBatch, TruncatedBatch, crc_is_valid, iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import iter_records
from tidelog.server.cluster.channels import ChannelError, Channels
from tidelog.server.cluster.node_login import NodeLogin, open_line
from tidelog.testing.simulation.client import Client, Later

PARTITIONS = 3
POLL_MS, ASK_MS = 2_000, 6_000
LOGIN_S = 5.0
MAX_BYTES = 1 << 20
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_DECISION = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_SERVER_ERROR})
"""A topic that the node does not know has no name to ask for; a node that has just started may not know the ACLs yet."""
SESSION_ENDED = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
Where = tuple[int, str, int]
"""A broker's id, host and port."""


class Guarded(ABC):
    """What these clients have in common. ``guide`` knows the leaders; it is another user's, whose rights stay."""

    def __init__(self, guide: Client, login: NodeLogin, history: History, state: GuardedState, name: str) -> None:
        self.guide, self.login, self.history, self.state, self.name = guide, login, history, state, name
        self.is_guarded = login.sasl is not None and login.sasl.username == USER
        self.channels = Channels(guide.runtime, name, login)

    async def run(self, stop: Callable[[], bool], pace_s: float) -> None:
        """One request after the other."""
        while not stop():
            try:
                await self.step()
            except Later:
                for topic in TOPICS:
                    self.guide.metadata.topics.pop(topic, None)
            await self.guide.pause(pace_s)

    @abstractmethod
    async def step(self) -> None:
        """One request. Later when there is no answer."""

    async def ask(self, where: Where, request: Any) -> Any:
        try:
            return await self.channels.to(where[1], where[2], "guarded").ask(request, timeout_ms=ASK_MS)
        except ChannelError as error:
            raise Later(str(error)) from None

    async def leaders(self) -> tuple[Where, list[TopicPartition]]:
        """Any broker that leads some of the partitions, and these."""
        metadata = self.guide.metadata
        if any(topic not in metadata.topics for topic in TOPICS):
            await self.guide.refresh(*TOPICS)
        led: dict[int, list[TopicPartition]] = {}
        for topic in TOPICS:
            for index in range(PARTITIONS):
                leader = metadata.leader(topic, index)
                if leader is not None and leader.broker in metadata.brokers:
                    led.setdefault(leader.broker, []).append(TopicPartition(topic, index))
        if not led:
            raise Later("no partition has a leader")
        broker = self.guide.rng.choice(sorted(led))
        return (broker, *metadata.brokers[broker]), led[broker]

    def topic_id(self, topic: str) -> bytes:
        return self.guide.metadata.topics[topic].topic_id

    def judge(self, node_id: int, what: str, sent: float, codes: Iterable[int]) -> None:
        """The error codes of one answer's partitions: all refused or none, and as the node has to decide."""
        refused = {code == DENIED for code in codes if code not in NO_DECISION}
        here = f"{self.name}, at node {node_id}, {sent:.3f} s to {self.guide.now:.3f} s"
        if len(refused) > 1:
            self.history.wrong.append(f"{here}: one request to {what} is refused for one topic and allowed for another")
        right = self.state.decides(node_id, what, sent) if self.is_guarded else True
        for each in refused:
            self.history.rare[f"requests to {what} that were refused" if each else f"requests to {what} that were allowed"] += 1
            if right is each:
                self.history.wrong.append(f"{here}: a request to {what} is {'refused' if each else 'allowed'}, against its ACLs")
        if any(code not in (ErrorCode.NONE, DENIED) for code in codes):
            raise Later("an error that passes")


class GuardedWriter(Guarded):
    """Writes with acks=all and forgets what fails: the guarded user to all partitions that a broker leads, another user to one
    of them, so that long polls and sessions have news of some partitions only."""

    count = 0

    async def step(self) -> None:
        where, led = await self.leaders()
        if not self.is_guarded:
            led = [self.guide.rng.choice(led)]
        sent, topics = self.guide.now, []
        for topic in TOPICS:
            data = [PartitionProduceData(at.partition, self._batch()) for at in led if at.topic == topic]
            if data:
                topics.append(TopicProduceData(name=topic, topic_id=self.topic_id(topic), partition_data=data))
        answer = await self.ask(where, ProduceRequest(acks=-1, timeout_ms=3_000, topic_data=topics))
        codes = [part.error_code for topic in answer.responses for part in topic.partition_responses]
        self.history.operations += ErrorCode.NONE in codes
        self.judge(where[0], WRITE, sent, codes)

    def _batch(self) -> bytearray:
        self.count += 1
        value = f"{self.name}-{self.count}".encode()
        self.state.written[value] = self.guide.now
        return build_batch([RecordData(None, value, self.guide.runtime.now_ms())])


class GuardedReader(Guarded):
    """Reads all partitions that a broker leads with one Fetch, which waits at the end of the logs."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.positions: dict[TopicPartition, int] = {}

    async def step(self) -> None:
        where, led = await self.leaders()
        sent = self.guide.now
        answer = await self.ask(where, self.request(led))
        if answer.error_code:
            raise Later(ErrorCode(answer.error_code).name)
        self.take(where[0], sent, self.parts(answer))

    def request(self, led: Iterable[TopicPartition], session_id: int = 0, epoch: int = -1) -> FetchRequest:
        """For these partitions, each from where the client has read to."""
        topics: dict[str, list[FetchPartition]] = {}
        for at in led:
            wanted = FetchPartition(at.partition, fetch_offset=self.positions.get(at, 0), partition_max_bytes=MAX_BYTES)
            topics.setdefault(at.topic, []).append(wanted)
        return FetchRequest(
            max_wait_ms=POLL_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic=name, topic_id=self.topic_id(name), partitions=parts) for name, parts in topics.items()],
        )

    def parts(self, answer: Any) -> dict[TopicPartition, Any]:
        """The answer's partitions."""
        names = {self.topic_id(topic): topic for topic in TOPICS}
        return {
            TopicPartition(names[bytes(topic.topic_id)], part.partition_index): part
            for topic in answer.responses
            for part in topic.partitions
        }

    def take(self, node_id: int, sent: float, parts: Mapping[TopicPartition, Any]) -> None:
        """Checks an answer and remembers how far it goes. Later after an error that passes."""
        for at, part in parts.items():
            if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.positions[at] = 0  # after an unclean election
            elif part.records:
                self._records(node_id, at, part.records)
        self.judge(node_id, READ, sent, [part.error_code for part in parts.values()])

    def _records(self, node_id: int, at: TopicPartition, records: Any) -> None:
        try:
            for header in iter_headers(records):
                if not crc_is_valid(records, header):
                    raise Later(f"{at} holds a damaged batch")
                for record in iter_records(memoryview(records)[header.position : header.position + header.size]):
                    self._one(node_id, at, bytes(record.value or b""))
                self.positions[at] = max(self.positions.get(at, 0), header.last_offset + 1)
        except TruncatedBatch:
            pass
        except CorruptBatch as damage:
            raise Later(str(damage)) from None
        self.history.operations += 1

    def _one(self, node_id: int, at: TopicPartition, value: bytes) -> None:
        written = self.state.written.get(value)
        if written is None:
            self.history.wrong.append(f"{at} shows {value!r}, which no client wrote")
        elif self.state.decides(node_id, READ, written) is False:
            self.history.wrong.append(
                f"{self.name} reads {value!r} of {at} from node {node_id}, written at {written:.3f} s, when the node had read "
                "that it may not"
            )


class SessionReader(GuardedReader):
    """The same in one fetch session with each broker, in which requests name only what has changed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._session: tuple[Where, int, int] | None = None
        """The broker, the session's id and its next epoch."""
        self._asked: dict[TopicPartition, int] = {}
        """The partitions of the session, and from where each is read."""

    async def step(self) -> None:
        try:
            await self._step()
        except Later:
            self._session = None
            raise

    async def _step(self) -> None:
        if self._session is None or self.guide.rng.random() < 0.03:
            where, led = await self.leaders()
            session_id = epoch = 0
            self._asked.clear()
        else:
            where, session_id, epoch = self._session
            led = list(self._asked)
        moved = [at for at in led if self._asked.get(at) != self.positions.get(at, 0)]
        self._asked.update((at, self.positions.get(at, 0)) for at in moved)
        sent = self.guide.now
        answer = await self.ask(where, self.request(moved, session_id, epoch))
        if answer.error_code:
            if answer.error_code not in SESSION_ENDED:
                self.history.wrong.append(f"{self.name}: Fetch is answered with {ErrorCode(answer.error_code).name}")
            raise Later(ErrorCode(answer.error_code).name)
        self._session = where, answer.session_id, epoch + 1
        parts = self.parts(answer)
        if self.state.decides(where[0], READ, sent) is False and len(parts) < len(self._asked):
            self.history.wrong.append(
                f"{self.name}: node {where[0]} has read that it may not read, and answers for {len(parts)} of "
                f"{len(self._asked)} partitions of its session"
            )
        self.take(where[0], sent, parts)
        if not answer.session_id:
            self._session = None  # the node keeps no more sessions


class Visitor(Guarded):
    """Logs in by a new connection each time."""

    async def step(self) -> None:
        metadata = self.guide.metadata
        if not metadata.brokers:
            await self.guide.refresh(*TOPICS)
        broker = self.guide.rng.choice(sorted(metadata.brokers))
        sent, entered = self.guide.now, True
        try:
            await self._enter(*metadata.brokers[broker])
        except NotAuthenticated:
            entered = False
        except (OSError, ProtocolViolation, TimeoutError) as error:
            metadata.brokers.clear()
            raise Later(str(error)) from None
        self.history.rare["logins that succeeded" if entered else "logins that were refused"] += 1
        if self.state.decides(broker, LOGIN, sent) is (not entered):
            self.history.wrong.append(
                f"{self.name}: a login at node {broker} sent at {sent:.3f} s {'succeeds' if entered else 'fails'}, and the node "
                f"had read that it must {'not' if entered else 'succeed'}"
            )

    async def _enter(self, host: str, port: int) -> None:
        ended = ConnectionAbortedError("the visit is over")
        line = Line(ClientConnection(self.name), lambda line, reason: line.close(reason))
        try:
            async with asyncio.timeout(LOGIN_S):
                await open_line(self.guide.runtime, line, self.login, host, port, host)
        finally:
            line.close(ended)
