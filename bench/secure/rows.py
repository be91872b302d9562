"""What is measured: the same bytes in plaintext, under TLS, and under TLS with a login, by produce, fetch, a steady rate, and
new connections.

Costs are CPU of the broker: seconds a GiB, microseconds a record or a connection.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.pair import frames
from bench.pair.frames import Frame
from bench.pair.processes import run
from bench.pair.rows import BATCH_16K, FETCH_BYTES, FETCH_STEP_BATCHES, FETCH_STEPS, FILL, ONE_RECORD
from bench.pair.sampling import LOAD_S, LoadResult
from bench.pair.servers import Server
from bench.secure.sides import (
    APACHE,
    COPYING,
    LIMIT,
    LISTENERS,
    PLAINTEXT,
    SASL_SSL,
    SSL,
    TIDELOG,
    load_program,
    port_of,
)

RATE = 10_000
"""Records a second of the paced rows."""
STAMP_IN_BATCH = ONE_RECORD.index(b"00000000x")


@dataclass(frozen=True, slots=True)
class Row:
    """``kind``: produce, fetch, paced, full or resumed. ``amount``: requests, records or connections of a sample."""

    kind: str
    listener: str
    amount: int
    connections: int
    in_flight: int = 1
    partitions: int = 1
    sides: tuple[str, ...] = (LIMIT, TIDELOG, APACHE)

    @property
    def name(self) -> str:
        """As it stands in tables."""
        what = {"paced": f"{RATE:,} records/s", "full": "new connections", "resumed": "resumed connections"}
        return f"{what.get(self.kind, self.kind)}, {self.listener}"

    @property
    def topic(self) -> str:
        """The row's own topic."""
        return f"{self.kind}-{self.listener}"

    @property
    def unit(self) -> str:
        """What a cost is for."""
        return {"produce": "GiB", "fetch": "GiB", "paced": "record"}.get(self.kind, "connection")


@dataclass(frozen=True)
class TlsLoad(LoadResult):
    """What the generator says beside the rest: the cipher, and how many sessions were resumed."""

    cipher: str = "none"
    resumed: int = 0

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "cipher": self.cipher, "resumed": self.resumed}


ROWS = (
    Row("fetch", PLAINTEXT, 2_400, 4, 2, sides=(LIMIT, TIDELOG, COPYING, APACHE)),
    Row("produce", SSL, 24_000, 4, 5, partitions=12),
    Row("fetch", SSL, 1_400, 4, 2),
    Row("paced", SSL, 3 * RATE, 8),
    Row("full", SSL, 1_000, 8),
    Row("resumed", SSL, 1_000, 8),
    Row("produce", SASL_SSL, 24_000, 4, 5, partitions=12),
    Row("fetch", SASL_SSL, 1_400, 4, 2),
    Row("paced", SASL_SSL, 3 * RATE, 8),
    Row("full", SASL_SSL, 800, 8),
)


def parse(text: str) -> TlsLoad:
    """The line of JSON that ``tls_load`` prints."""
    found = json.loads(text)
    latencies = {
        f"{name}_{part}_ms": found[f"{name}_us"][part] / 1e3
        for name in ("acked", "consumed")
        if f"{name}_us" in found
        for part in ("p50", "p99", "p999")
    }
    return TlsLoad(
        int(found["requests"]),
        found["seconds"],
        found["user_s"],
        found["system_s"],
        found["sent"] + found["received"],
        latencies,
        found["cipher"],
        found["resumed"],
    )


def generate(port: int, listener: str, wanted: Sequence[Frame], mode: str, *numbers: int) -> TlsLoad:
    """Run ``tls_load``. Raises Failed."""
    security = dict(zip(LISTENERS, ("plain", "ssl", "sasl_ssl"), strict=True))[listener]
    with tempfile.NamedTemporaryFile(prefix="tidelog-secure-frames-") as file:
        frames.write_frames(Path(file.name), wanted)
        command = [str(load_program()), file.name, security, str(port), mode, *map(str, numbers)]
        return parse(run(command, os.environ, Path.cwd(), LOAD_S))


def paced_frames(topic: str, topic_id: bytes, offset: int) -> list[Frame]:
    """The fetch at the end of the partition, and the produce of one record, into which the moment is written."""
    asked = frames.produce(topic, [0], ONE_RECORD, acks=1)
    stamp_at = asked.request.index(ONE_RECORD) + STAMP_IN_BATCH
    stamped = Frame(asked.request, asked.error_at, asked.least, stamp_at)
    return [frames.fetch(topic_id, 0, offset, FETCH_BYTES, 0), stamped]


class Bench:
    """A row on a server: its topic, its frames, and how much of the topic is written."""

    def __init__(self, row: Row, server: Server) -> None:
        self.row, self.server = row, server
        self._written = 0
        self._topic_id = server.create(row.topic, row.partitions) if row.kind in {"produce", "fetch", "paced"} else bytes(16)
        if self._topic_id != bytes(16):
            server.await_leaders(self._topic_id, row.partitions)
        if row.kind == "fetch":
            self._run(PLAINTEXT, [frames.produce(row.topic, [0], BATCH_16K)], "flood", 1, 4, FILL)

    def run(self, amount: int) -> TlsLoad:
        """That many requests, records or connections."""
        row = self.row
        if row.kind == "paced":
            wanted = paced_frames(row.topic, self._topic_id, self._written)
            found = self._run(row.listener, wanted, "paced", row.connections, RATE, amount, STAMP_IN_BATCH)
            self._written += amount
            return found
        if row.kind in {"produce", "fetch"}:
            return self._run(row.listener, self._frames(), "flood", row.connections, row.in_flight, amount)
        return self._run(row.listener, [frames.api_versions()], "shake", row.connections, int(row.kind == "resumed"), amount)

    def _run(self, listener: str, wanted: Sequence[Frame], mode: str, *numbers: int) -> TlsLoad:
        found = generate(port_of(self.server, listener), listener, wanted, mode, *numbers)
        self.server.check()
        return found

    def _frames(self) -> list[Frame]:
        row = self.row
        if row.kind == "produce":
            return [frames.produce(row.topic, [index], BATCH_16K, acks=1) for index in range(row.partitions)]
        step, least = FETCH_STEP_BATCHES * 15, FETCH_BYTES - len(BATCH_16K)
        return [frames.fetch(self._topic_id, 0, number * step, FETCH_BYTES, least) for number in range(FETCH_STEPS)]
