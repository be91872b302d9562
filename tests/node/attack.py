"""Sends frames that are wrong in many ways to a live node and sees that each is answered or that its connection ends.

One thread, non-blocking sockets: every connection has one frame on its way, so each frame that is counted was judged by the node.
Seeds replay. What is sent: requests of every API at every version with bytes changed, cut, put in or made huge lengths; and valid
Produce requests around batches that are broken in the same ways.
"""

from __future__ import annotations

import random
import selectors
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.property.test_codec_garbage import mutate
from tests.unit.protocol.random_messages import Maker, all_messages
from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.compression import Codec

HARMFUL = {"UnregisterBrokerRequest", "DeleteRecordsRequest"}
"""Requests that, when a mutation leaves them whole, do rightfully what would disturb the bystander."""
ANSWER_TIMEOUT_S = 5.0
"""A fetch that was mutated into a long poll may wait; after this the connection is given up, and that is counted."""


@dataclass
class Tally:
    """What came of the frames: an answer, a closed connection, or neither in time (a request that may wait, or half a frame)."""

    answered: int = 0
    closed: int = 0
    silent: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def judged(self) -> int:
        return self.answered + self.closed


class FrameMaker:
    """Wrong frames without end, from one seed."""

    def __init__(self, seed: int, topic: str) -> None:
        self.rng = random.Random(seed)
        self.topic = topic
        self.requests = [message for message in all_messages() if message.kind == "request" and message.name not in HARMFUL]
        self.batches = [
            bytes(build_batch([RecordData(b"k%d" % n, b"v" * 40, 1_700_000_000_000 + n) for n in range(count)], codec=codec))
            for codec in Codec
            for count in (1, 7)
        ]

    def frame(self) -> tuple[str, bytes]:
        """A kind and the frame with its length."""
        roll = self.rng.random()
        if roll < 0.6:
            return "batch", framed(self.produce(mutate(self.rng, self.rng.choice(self.batches))))
        if roll < 0.97:
            return "request", framed(self.request())
        return "length", self.length()

    def produce(self, batch: bytes) -> bytes:
        """A Produce of one batch, itself well formed."""
        version = self.rng.randint(3, 12)
        header = encode_request_header(RequestHeader(0, version, 7, "attack"))
        body = ProduceRequest(
            acks=self.rng.choice((1, -1)),
            timeout_ms=1000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=0, records=batch)])],
        )
        return header + body.encode(version)

    def request(self) -> bytes:
        """Some API at some version, broken."""
        message = self.rng.choice(self.requests)
        version = self.rng.randint(message.versions[0], message.versions[1])
        try:
            header = encode_request_header(RequestHeader(message.key, version, 9, "attack"))
        except (KeyError, ValueError):
            header = struct.pack(">hhih", message.key, version, 9, -1)
        whole = header + Maker(message, version, self.rng).make().encode(version)
        return mutate(self.rng, whole) if self.rng.random() < 0.8 else whole

    def length(self) -> bytes:
        """A length that is negative, far too large, or larger than what follows."""
        size = self.rng.choice((-1, -(2**31), 2**31 - 1, 104_857_601, 104_857_600, 3))
        return struct.pack(">i", size) + self.rng.randbytes(self.rng.randint(0, 40))


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class Attacker:
    """``connections`` sockets, each with one frame on its way; ``frame`` makes a kind and a frame with its length."""

    def __init__(
        self,
        port: int,
        frame: Callable[[], tuple[str, bytes]],
        connections: int = 32,
        patience_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        self.port = port
        self.frame = frame
        self.connections = connections
        self.patience_s = patience_s
        self.tally = Tally()
        self._selector = selectors.DefaultSelector()

    def run(self, frames: int) -> Tally:
        """Until that many were answered or closed their connection."""
        return self.go_on(lambda: self.tally.judged < frames)

    def go_on(self, going: Callable[[], bool]) -> Tally:
        """Run while ``going`` returns true. OSError when the connection is refused."""
        for _ in range(self.connections):
            self._open()
        while going():
            now = time.monotonic()
            for key, _ in self._selector.select(0.2):
                self._read(key.fileobj, key.data)  # type: ignore[arg-type]
            for key in list(self._selector.get_map().values()):
                if now - key.data["sent"] > self.patience_s:
                    self.tally.silent += 1
                    self._again(key.fileobj)  # type: ignore[arg-type]
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
        return self.tally

    def _open(self) -> None:
        connection = socket.create_connection(("127.0.0.1", self.port), 5)
        connection.settimeout(5)
        state: dict[str, Any] = {}
        self._selector.register(connection, selectors.EVENT_READ, state)
        self._send(connection, state)

    def _send(self, connection: socket.socket, state: dict[str, Any]) -> None:
        kind, frame = self.frame()
        self.tally.kinds[kind] += 1
        state.update(sent=time.monotonic(), buffer=b"")
        try:
            connection.sendall(frame)
        except OSError:
            self.tally.closed += 1
            self._again(connection)

    def _read(self, connection: socket.socket, state: dict[str, Any]) -> None:
        try:
            data = connection.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self.tally.closed += 1
            self._again(connection)
            return
        buffer = state["buffer"] = state["buffer"] + data
        if len(buffer) >= 4 and len(buffer) >= 4 + struct.unpack_from(">i", buffer)[0]:
            self.tally.answered += 1
            self._send(connection, state)

    def _again(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()
        self._open()
