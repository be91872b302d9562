"""Sends requests that are well formed and untrue: ids, epochs and offsets of others, or none that can be.

``attack.py`` breaks frames; here every frame can be read, and what it says is a lie that a broker, a controller or a client could
tell: fetches with the ids of replicas, heartbeats and registrations of other brokers, votes, snapshots, markers, envelopes. One
thread, one request on its way for each connection; seeds replay.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.node.attack import Attacker, Tally, framed
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


class Lie(Maker):
    """One request, of what the liar knows."""

    def __init__(self, *args: Any, known: Known) -> None:
        super().__init__(*args)
        self.known = known

    def _one(self, f: Field, depth: int) -> Any:
        rng, known, name = self.rng, self.known, f.name.lower()
        if name == "wantshutdown":
            return False  # Rightful from whoever knows a broker's epoch, as a stop in order is: nothing is placed there any more.
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
        self.known = known
        self.rng = random.Random(seed)
        self._attacker = Attacker(port, self.frame, CONNECTIONS, PATIENCE_S)
        self.tally = self._attacker.tally
        requests = {message.key: message for message in all_messages() if message.kind == "request"}
        self._served = [(api, requests[api.key]) for api in apis if api.key not in set(spared)]

    def frame(self) -> tuple[str, bytes]:
        """The name of a request, and the request with its length."""
        while True:
            api, message = self.rng.choice(self._served)
            first = max(api.versions[0], message.versions[0])
            version = self.rng.choice((self.rng.randint(first, api.versions[1]), api.versions[1]))
            with contextlib.suppress(ValueError):  # Some values have no words in some versions.
                body = Lie(message, version, self.rng, known=self.known).make().encode(version)
                data = encode_request_header(RequestHeader(message.key, version, 9, "liar")) + body
                return message.name, framed(data)

    def run(self, seconds: float) -> Tally:
        """Run for that time. OSError when the connection is refused."""
        end = time.monotonic() + seconds
        return self._attacker.go_on(lambda: time.monotonic() < end)
