"""``python -m bench.wire_rate``: what ``OpenMessaging.java`` does at a rate, by raw requests from one process.

The same arguments, the same words printed, for a fraction of a JVM's CPU: where nodes and clients share two cores, its latencies
are those of the nodes rather than of a machine that is full. Producers do as Java's: idempotent, acks=all, a batch leaves when
its first record has waited for a millisecond, five requests in flight per connection, one partition until batch.size bytes went
there. Consumers have a fetch session with each leader, and ask for at least one byte. End to end is from the moment a record was
due until its bytes are here.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, Protocol

from tidelog.client.connection import ClientConnection
from tidelog.protocol.framing import FrameReader
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tidelog.protocol.primitives import read_uvarint, write_uvarint
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, assemble, encode_record
from tidelog.records.record import iter_records

LINGER_NS = 1_000_000
IN_FLIGHT = 5
BOUND_S = 30.0
MAX_FRAME = 1 << 26
LATEST = -1
PERCENTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}

_HEADER = Struct(">ihhih5sB")
_PRODUCE = Struct(">BhiB16sBi")
_FETCH = Struct(">iiibii")
_WANTED = Struct(">iiqiqiB")
_FOUND = Struct(">ihqqqBi")
_FETCHED = Struct(">ibihi")
_CLIENT = b"bench"
_NO_TAGS = b"\0\0\0"
_PRODUCE_KEY, _PRODUCE_VERSION, _FETCH_KEY, _FETCH_VERSION = 0, 13, 1, 17
_PRODUCE_ERROR_AT = 27
"""In an answer without its length: correlation id, tags, a topic's id, an index, and a count before each."""


class Failed(Exception):
    """A broker answered with an error."""


def frame(key: int, version: int, correlation: int, *body: bytes) -> bytes:
    """A whole request."""
    size = _HEADER.size - 4 + sum(map(len, body))
    return b"".join((_HEADER.pack(size, key, version, correlation, len(_CLIENT), _CLIENT, 0), *body))


class Layout(NamedTuple):
    """A topic, as its brokers tell of it."""

    topic: str
    topic_id: bytes
    leaders: dict[int, int]
    addresses: dict[int, tuple[str, int]]


class Asking:
    """A connection for questions that are asked one at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, BOUND_S)
        self._client = ClientConnection(_CLIENT.decode())
        self._client.welcomed(self._exchange(self._client.hello()))

    def ask(self, request: object) -> object:
        """The answer."""
        return self._exchange(self._client.request(request))  # type: ignore[arg-type]

    def _exchange(self, sent: bytes) -> object:  # type: ignore[misc]
        self._socket.sendall(sent)
        while not (found := self._client.receive(self._socket.recv(1 << 16))):
            pass
        return found[0]


def layout(bootstrap: str, topic: str) -> Layout:
    """Who leads what."""
    host, _, port = bootstrap.split(",", maxsplit=1)[0].rpartition(":")
    answer = Asking((host, int(port))).ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    assert isinstance(answer, MetadataResponse)
    found = answer.topics[0]
    return Layout(
        topic,
        bytes(found.topic_id),
        {each.partition_index: each.leader_id for each in found.partitions},
        {each.node_id: (each.host, each.port) for each in answer.brokers},
    )


class Receiver(Protocol):
    """Whose answers come in over a connection."""

    def answered(self, line: Line, answer: memoryview) -> None:
        """A response, without its length."""
        ...


class Line:
    """One connection to one broker."""

    def __init__(self, address: tuple[str, int], owner: Receiver) -> None:
        self.socket = socket.create_connection(address, BOUND_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.owner = owner
        self.in_flight = 0
        self._reader = FrameReader(MAX_FRAME, max_plain_bytes=MAX_FRAME)

    def send(self, request: bytes) -> None:
        """As a whole."""
        self.in_flight += 1
        self.socket.sendall(request)

    def readable(self) -> None:
        """Answers have come."""
        count = self.socket.recv_into(self._reader.writable())
        if not count:
            raise Failed("a broker closed the connection")
        self._reader.received(count)
        while (answer := self._reader.next_frame()) is not None:
            self.in_flight -= 1
            self.owner.answered(self, answer)


class Producer:
    """Records of one producer: due, then sent, then acknowledged."""

    def __init__(self, at: Layout, size: int, batch_bytes: int, seed: int) -> None:
        self._at = at
        self._rng = random.Random(seed)
        self._filler = self._rng.randbytes(size // 2).rjust(size, b"\0")[8:]
        self._most = max(1, batch_bytes // (size + 8))
        self.lines = {node: Line(address, self) for node, address in at.addresses.items()}
        granted = Asking(next(iter(at.addresses.values()))).ask(InitProducerIdRequest(transaction_timeout_ms=60_000))
        self._producer_id: int = granted.producer_id  # type: ignore[attr-defined]
        self._producer_epoch: int = granted.producer_epoch  # type: ignore[attr-defined]
        self._sequences = dict.fromkeys(at.leaders, 0)
        self._partition = self._left = 0
        self._sent: deque[int] = deque()
        self._correlation = 0
        self.due: deque[int] = deque()
        """Records that wait, by the nanosecond at which each was due."""
        self.acked = self.requests = 0

    def send(self, now_ns: int) -> None:
        """What has waited for long enough, as far as its broker has room."""
        while self.due and now_ns - self.due[0] >= LINGER_NS:
            if self._left <= 0:
                self._partition = self._rng.choice(list(self._at.leaders))
                self._left = self._most
            line = self.lines[self._at.leaders[self._partition]]
            if line.in_flight >= IN_FLIGHT:
                return
            stamps = [self.due.popleft() for _ in range(min(len(self.due), self._left))]
            self._left -= len(stamps)
            self._sent.append(len(stamps))
            line.send(self._request(stamps))

    def _request(self, stamps: list[int]) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        filler = self._filler
        body = b"".join(
            encode_record(RecordData(None, stamp.to_bytes(8, "big") + filler), number, 0) for number, stamp in enumerate(stamps)
        )
        partition, count = self._partition, len(stamps)
        batch = assemble(
            body,
            count,
            base_offset=0,
            last_offset_delta=count - 1,
            leader_epoch=-1,
            attributes=0,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequences[partition],
        )
        self._sequences[partition] += count
        self._correlation += 1
        self.requests += 1
        length = bytearray()
        write_uvarint(length, len(batch) + 1)
        what = _PRODUCE.pack(0, -1, 30_000, 2, self._at.topic_id, 2, partition)
        return frame(_PRODUCE_KEY, _PRODUCE_VERSION, self._correlation, what, bytes(length), batch, _NO_TAGS)

    def answered(self, line: Line, answer: memoryview) -> None:
        error = int.from_bytes(answer[_PRODUCE_ERROR_AT : _PRODUCE_ERROR_AT + 2], "big")
        if error:
            raise Failed(f"a Produce was answered with error {error}")
        # Answers of several brokers cross, and with them these counts: their sum is right.
        self.acked += self._sent.popleft()


class Consumer:
    """The partitions of one consumer at one leader, in a fetch session."""

    def __init__(self, at: Layout, node: int, partitions: list[int], waits: list[int]) -> None:
        self._topic_id = at.topic_id
        wanted = [ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in partitions]
        ends = Asking(at.addresses[node]).ask(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=at.topic, partitions=wanted)])
        )
        parts = ends.topics[0].partitions  # type: ignore[attr-defined]
        self._offsets: dict[int, int] = {each.partition_index: each.offset for each in parts}
        self.line = Line(at.addresses[node], self)
        self._session = self._epoch = self._correlation = 0
        self._waits = waits
        self.consumed = self.requests = 0
        self.counted = (1 << 62, 1 << 62)
        """From when to when a record must have been due, in nanoseconds, to be counted."""
        self._ask(list(self._offsets))

    def _ask(self, named: list[int]) -> None:
        self._correlation += 1
        self.requests += 1
        head = _FETCH.pack(500, 1, 52_428_800, 0, self._session, self._epoch)
        wanted = b"".join(_WANTED.pack(each, -1, self._offsets[each], -1, -1, 10_485_760, 0) for each in named)
        topics = b"\1" if not named else b"\2" + self._topic_id + bytes((len(named) + 1,)) + wanted + b"\0"
        self.line.send(frame(_FETCH_KEY, _FETCH_VERSION, self._correlation, head, topics, b"\1\1\0"))

    def answered(self, line: Line, answer: memoryview) -> None:
        now_ns = time.monotonic_ns()
        _, _, _, error, self._session = _FETCHED.unpack_from(answer)
        if error:
            raise Failed(f"a Fetch was answered with error {error}")
        self._epoch += 1
        news = [index for index, records in self._parts(answer) if self._take(index, records, now_ns)]
        self._ask(news)

    def _parts(self, answer: memoryview) -> Iterator[tuple[int, memoryview]]:
        at = _FETCHED.size + 1
        if answer[at - 1] < 2:
            return
        count = answer[at + 16] - 1
        at += 17
        for _ in range(count):
            index, error, *_ = _FOUND.unpack_from(answer, at)
            if error:
                raise Failed(f"partition {index} was answered with error {error}")
            size, at = read_uvarint(answer, at + _FOUND.size)
            yield index, answer[at : at + size - 1]
            at += size

    def _take(self, index: int, records: memoryview, now_ns: int) -> bool:
        first, last = self.counted
        if not len(records):
            return False
        for header in iter_headers(records):
            self._offsets[index] = header.next_offset
            for record in iter_records(records[header.position : header.position + header.size], None):
                self.consumed += 1
                assert record.value is not None
                due_ns = int.from_bytes(record.value[:8], "big")
                if first <= due_ns < last:
                    self._waits.append(now_ns - due_ns)
        return True


class Load:
    """All of them, on one thread."""

    def __init__(self, how: argparse.Namespace) -> None:
        self._how = how
        at = layout(how.bootstrap, how.topic)
        self.waits: list[int] = []
        self.consumers = [
            Consumer(at, node, mine, self.waits)
            for number in range(how.clients)
            for node in at.addresses
            if (mine := [each for each in at.leaders if each % how.clients == number and at.leaders[each] == node])
        ]
        self.producers = [Producer(at, how.size, how.batch, number) for number in range(how.clients)]
        self._lines = {line.socket.fileno(): line for producer in self.producers for line in producer.lines.values()}
        self._lines |= {consumer.line.socket.fileno(): consumer.line for consumer in self.consumers}
        self._poll = select.epoll()
        for number in self._lines:
            self._poll.register(number, select.EPOLLIN)
        self._due = 0
        self._start_ns = time.monotonic_ns()

    def run_until(self, end_ns: int, *, producing: bool = True) -> None:
        """Send, receive."""
        rate, producers = self._how.rate, self.producers
        while (now_ns := time.monotonic_ns()) < end_ns:
            while producing and (due_ns := self._start_ns + self._due * 10**9 // rate) <= now_ns:
                producers[self._due % len(producers)].due.append(due_ns)
                self._due += 1
            for producer in producers:
                producer.send(now_ns)
            for number, _ in self._poll.poll(0.001):
                self._lines[number].readable()

    def totals(self) -> tuple[int, int, int, int]:
        """Records acknowledged and consumed, requests to produce and to fetch."""
        acked, produces = (sum(each) for each in zip(*((one.acked, one.requests) for one in self.producers), strict=True))
        consumed, fetches = (sum(each) for each in zip(*((one.consumed, one.requests) for one in self.consumers), strict=True))
        return acked, consumed, produces, fetches

    def run(self) -> dict[str, float]:
        """The numbers of ``OpenMessaging.java``, and how many requests there were."""
        how = self._how
        self._start_ns = time.monotonic_ns()
        begin_ns = self._start_ns + how.warmup * 10**9
        self.run_until(begin_ns)
        end_ns = begin_ns + how.seconds * 10**9
        for consumer in self.consumers:
            consumer.counted = (begin_ns, end_ns)
        before, cpu = self.totals(), time.process_time()
        print("begin", flush=True)
        self.run_until(end_ns)
        after, cpu = self.totals(), time.process_time() - cpu
        print("end", flush=True)
        self.run_until(end_ns + 10**9)  # what is on its way belongs to the measured time
        acked, consumed, produces, fetches = (late - early for early, late in zip(before, after, strict=True))
        waits = sorted(self.waits)
        return {
            "seconds": how.seconds,
            "records": acked,
            "records_per_s": acked / how.seconds,
            "mb_per_s": acked * how.size / 1048576 / how.seconds,
            "consumed_per_s": consumed / how.seconds,
            "failed": 0,
            "client_cpu_s": cpu,
            "produce_requests": produces,
            "fetch_requests": fetches,
            **{name: waits[min(int(len(waits) * part), len(waits) - 1)] / 1e6 for name, part in PERCENTILES.items()},
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.wire_rate", description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    for name in ("partitions", "rate", "seconds", "warmup", "size", "clients", "batch"):
        parser.add_argument(name, type=int)
    print(json.dumps(Load(parser.parse_args()).run()), flush=True)


if __name__ == "__main__":
    main()
