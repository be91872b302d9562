"""What is measured: the loads that ``load.c`` puts on a node, on three nodes, and what tools, starts and Spark's reader cost.

Shapes are those of the comparison with Apache Kafka. Costs are such that less is better: CPU microseconds (or instructions) a
request, a record or a row, CPU milliseconds of a start, MiB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.pair import frames
from bench.pair.frames import Frame

BATCH_16K = frames.batch(15, 1024)
BATCH_128K = frames.batch(126, 1024)
ONE_RECORD = frames.batch(1, 100)
FETCH_BYTES = 1 << 20
COUNTED_FETCH_BYTES = 1 << 16
"""Fits into a socket's buffer: a larger answer leaves in pieces, whose number depends on how quickly the consumer reads."""
FETCH_STEPS, FETCH_STEP_BATCHES = 16, 60
FILL = FETCH_STEPS * FETCH_STEP_BATCHES + 80
"""Batches of 16 KiB: what the last fetch asks for is there in full."""


@dataclass(frozen=True, slots=True)
class Load:
    """A row of requests. ``build``: topic and topic id to frames. ``fill``: batches of 16 KiB that are in the topic before.
    ``requests``: of a sample that is timed; ``counted``: of one whose instructions are counted, with ``counted_build`` and
    ``counted_connections`` where its frames and connections are others. ``tail``: see ``load.c``."""

    name: str
    unit: str
    group: str
    build: Callable[[str, bytes], list[Frame]]
    partitions: int
    connections: int
    in_flight: int
    requests: int
    counted: int
    fill: int = 0
    tail: bool = False
    counted_build: Callable[[str, bytes], list[Frame]] | None = None
    counted_connections: int = 0

    @property
    def topic(self) -> str:
        """The row's own topic."""
        return "".join(each if each.isalnum() else "-" for each in self.name)


@dataclass(frozen=True, slots=True)
class Task:
    """A row that is no load of requests; how it is measured is in ``tasks``."""

    name: str
    unit: str
    kind: str


def _produce(batch: bytes, partitions: int) -> Callable[[str, bytes], list[Frame]]:
    return lambda topic, _: [frames.produce(topic, [index], batch) for index in range(partitions)]


def _catch_up(max_bytes: int) -> Callable[[str, bytes], list[Frame]]:
    step = FETCH_STEP_BATCHES * 15
    least = max_bytes - len(BATCH_16K)
    return lambda _, topic_id: [frames.fetch(topic_id, 0, number * step, max_bytes, least) for number in range(FETCH_STEPS)]


def tail_frames(topic: str, topic_id: bytes, offset: int) -> list[Frame]:
    """The fetch at the end of the partition, and the produce that ends its wait."""
    least = len(ONE_RECORD)
    return [frames.fetch(topic_id, 0, offset, FETCH_BYTES, least), frames.produce(topic, [0], ONE_RECORD, acks=1)]


def _tail(topic: str, topic_id: bytes) -> list[Frame]:
    return tail_frames(topic, topic_id, 0)


def _tiny(topic: str, _: bytes) -> list[Frame]:
    return [frames.api_versions(), frames.metadata(topic)]


LOADS = (
    Load("produce 16K x 1", "request", "node", _produce(BATCH_16K, 12), 12, 1, 5, 50_000, 600),
    Load("produce 128K x 1", "request", "node", _produce(BATCH_128K, 1), 1, 1, 5, 8_000, 200),
    Load("one record, 1 connection", "request", "node", _produce(ONE_RECORD, 1), 1, 1, 1, 50_000, 1_000),
    Load("one record, 8 connections", "request", "node", _produce(ONE_RECORD, 1), 1, 8, 1, 100_000, 2_400),
    Load(
        "fetch, catch-up",
        "request of 1 MiB (counted: 64 KiB)",
        "node",
        _catch_up(FETCH_BYTES),
        1,
        1,
        2,
        10_000,
        800,
        fill=FILL,
        counted_build=_catch_up(COUNTED_FETCH_BYTES),
    ),
    Load("fetch, tail", "record, produced and fetched", "node", _tail, 1, 2, 1, 30_000, 400, tail=True),
    Load("tiny requests", "request", "node", _tiny, 12, 8, 1, 100_000, 2_400),
    # With several connections, how many records a follower's fetch brings depends on the moment: counts would differ by 5 %.
    Load(
        "replicated record",
        "record, on three nodes",
        "cluster",
        _produce(ONE_RECORD, 1),
        1,
        8,
        1,
        40_000,
        400,
        counted_connections=1,
    ),
)
TASKS = (
    Task("topics --list", "run", "list"),
    Task("import tidelog.testing", "import", "import"),
    Task("start of a node", "start", "start"),
    Task("idle memory of a node", "MiB", "memory"),
    Task("Spark's reader", "row", "reader"),
)
