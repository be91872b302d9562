"""Sends requests that are well formed and untrue: ids, epochs and offsets of others, or none that can be.

``attack.py`` breaks frames; here every frame can be read, and what it says is a lie that a broker, a controller or a client could
tell: fetches with the ids of replicas, heartbeats and registrations of other brokers, votes, snapshots, markers, envelopes. One
thread, one request on its way for each connection; seeds replay.
"""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.unit.protocol.random_messages import RANGES, Maker, all_messages
from tidelog.broker.api import Api
from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.schema import Field

ABSURD = (2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 2**32, 2**62, 1 << 40, -1, -2, 0)
ABSURD_SHARE = 0.12
CONNECTIONS = 12
PATIENCE_S = 3.0


@dataclass
class Known:
    """What a liar has found out, and mixes into what it says."""

    nodes: Sequence[int]
    cluster_id: str
    topics: Sequence[str] = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "nowhere")
    topic_ids: Sequence[bytes] = (bytes(16),)
    directories: Sequence[bytes] = (bytes(16),)
    broker_epochs: Sequence[int] = tuple(range(40))
    batches: Sequence[bytes] = (b"",)


@dataclass
class Tally:
    """What came of it."""

    answered: int = 0
    closed: int = 0
    silent: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


class Lie(Maker):
    """One request, of what the liar knows."""

    def __init__(self, *args: Any, known: Known) -> None:
        super().__init__(*args)
        self.known = known

    def _one(self, f: Field, depth: int) -> Any:
        rng, known, name = self.rng, self.known, f.name.lower()
        if f.is_struct or rng.random() < ABSURD_SHARE:
            return super()._one(f, depth)
        if f.element == "string":
            return self._text(name)
        if f.element == "uuid":
            return rng.choice(known.directories if "dir" in name or "incarnation" in name else known.topic_ids)
        if f.element in RANGES:
            low, high = RANGES[f.element]
            return max(low, min(high, self._likely(name)))
        if f.element in ("bytes", "records"):
            return rng.choice(known.batches)
        return super()._one(f, depth)

    def _text(self, name: str) -> str:
        if "cluster" in name:
            return self.known.cluster_id
        if "topic" in name or name == "name":
            return self.rng.choice(self.known.topics)
        if "host" in name:
            return self.rng.choice(("127.0.0.1", "localhost", ""))
        if "listener" in name:
            return self.rng.choice(("PLAINTEXT", "CONTROLLER"))
        return self.rng.choice(("t", "g", "metadata.version", "kraft.version", "min.insync.replicas", "1"))

    def _likely(self, name: str) -> int:
        rng, known = self.rng, self.known
        if rng.random() < ABSURD_SHARE:
            return rng.choice(ABSURD)
        choices: tuple[tuple[tuple[str, ...], Sequence[int]], ...] = (
            (("brokerepoch", "replicaepoch"), known.broker_epochs),
            (("timeout", "wait"), (0, 1, 10, 50)),
            (("bytes",), (0, 1, 1000, 1 << 20)),
            (("epoch",), (-1, 0, 1, 2, 3, 5, 8)),
            (("offset", "position"), (-1, 0, 1, 2, 5, 10, 50, 200)),
            (("partition", "index"), (0, 0, 0, 1, 2, 3, -1, 100)),
            (("producerid",), (0, 1, 2, 1000)),
            (("id", "leader", "replica", "isr", "voter", "node"), (*known.nodes, 101, -1)),
        )
        for parts, values in choices:
            if any(part in name for part in parts):
                return rng.choice(values)
        return rng.choice((-1, 0, 1, 2, 3))


class Liar:
    """Lies to one listener; ``apis`` are what it serves, without those numbered in ``spared``."""

    def __init__(self, port: int, apis: Iterable[Api], known: Known, seed: int, spared: Iterable[int] = ()) -> None:
        self.port = port
        self.known = known
        self.rng = random.Random(seed)
        self.tally = Tally()
        requests = {message.key: message for message in all_messages() if message.kind == "request"}
        self._served = [(api, requests[api.key]) for api in apis if api.key not in set(spared)]
        self._selector = selectors.DefaultSelector()

    def frame(self) -> tuple[str, bytes]:
        """The name of a request, and the request with its length."""
        while True:
            api, message = self.rng.choice(self._served)
            first = max(api.versions[0], message.versions[0])
            version = self.rng.choice((self.rng.randint(first, api.versions[1]), api.versions[1]))
            with contextlib.suppress(ValueError):  # Some values have no words in some versions.
                body = Lie(message, version, self.rng, known=self.known).make().encode(version)
                data = encode_request_header(RequestHeader(message.key, version, 9, "liar")) + body
                return message.name, struct.pack(">i", len(data)) + data

    def run(self, seconds: float) -> Tally:
        """Go on for so long. OSError when nobody listens any more."""
        for _ in range(CONNECTIONS):
            self._open()
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            for key, _ in self._selector.select(0.2):
                self._read(key.fileobj, key.data)  # type: ignore[arg-type]
            for key in [each for each in self._selector.get_map().values() if now - each.data["sent"] > PATIENCE_S]:
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

    def _again(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()
        self._open()

    def _send(self, connection: socket.socket, state: dict[str, Any]) -> None:
        name, data = self.frame()
        self.tally.kinds[name] += 1
        state.update(sent=time.monotonic(), buffer=b"")
        try:
            connection.sendall(data)
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
