"""What is measured: one row of the table each. A row yields named numbers; which of them is compared stands here."""

from __future__ import annotations

import base64
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.java_load import bench, produce, produce_request
from bench.sides import Side

Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything: the full run, one that takes a third of the time, and the smoke run."""

    megabytes: int  # per produce row
    seconds: int  # per row with a fixed duration
    warmup: int
    cold_megabytes: int
    partitions: int
    starts: int


FULL = Scale(megabytes=400, seconds=8, warmup=4, cold_megabytes=1500, partitions=2000, starts=3)
QUICK = Scale(megabytes=120, seconds=4, warmup=2, cold_megabytes=500, partitions=2000, starts=2)
SMOKE = Scale(megabytes=8, seconds=1, warmup=1, cold_megabytes=20, partitions=100, starts=1)


@dataclass(frozen=True, slots=True)
class Shape:
    """How records are produced. The chosen shapes hold every pair of values of any two settings."""

    size: int
    partitions: int
    batch_kib: int
    acks: str
    codec: str

    def __str__(self) -> str:
        size = f"{self.size} B" if self.size < 1024 else "1 KiB"
        codec = "" if self.codec == "none" else f", {self.codec}"
        return f"{size}, {self.partitions} p., {self.batch_kib} KiB batches, acks={self.acks}{codec}"

    @property
    def topic(self) -> str:
        return f"t-{self.size}-{self.partitions}-{self.batch_kib}-{self.acks}-{self.codec}"

    def records(self, scale: Scale) -> int:
        # small records cost more each: half the bytes keep the rows about equally long
        return scale.megabytes * (1 << 20) // self.size // (2 if self.size < 1024 else 1)


SHAPES = (
    Shape(100, 1, 16, "1", "none"),
    Shape(100, 12, 128, "all", "none"),
    Shape(100, 12, 16, "1", "lz4"),
    Shape(100, 1, 128, "all", "lz4"),
    Shape(1024, 1, 16, "1", "none"),
    Shape(1024, 12, 16, "all", "none"),
    Shape(1024, 12, 128, "1", "none"),
    Shape(1024, 1, 128, "all", "none"),
    Shape(1024, 1, 16, "all", "lz4"),
    Shape(1024, 12, 128, "1", "lz4"),
)


def uncovered(shapes: tuple[Shape, ...] = SHAPES) -> list[str]:
    """Pairs of values that no shape has."""
    values = {"size": (100, 1024), "partitions": (1, 12), "batch_kib": (16, 128), "acks": ("1", "all"), "codec": ("none", "lz4")}
    missing = []
    for (one, of_one), (two, of_two) in itertools.combinations(values.items(), 2):
        for pair in itertools.product(of_one, of_two):
            if not any((getattr(shape, one), getattr(shape, two)) == pair for shape in shapes):
                missing.append(f"{one}={pair[0]} with {two}={pair[1]}")
    return missing


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result. ``work`` measures on a running broker; ``main`` is the number that is compared."""

    name: str
    kind: str  # produce, fetch, requests, latency, start, memory
    main: str
    unit: str
    higher_is_better: bool
    work: Callable[[Side, Scale], Numbers]


def with_cpu(side: Side, work: Callable[[], Numbers]) -> Numbers:
    """The work's numbers, with the CPU seconds that the broker used for it. What is dirty is written out beforehand."""
    os.sync()
    before = side.cpu()
    numbers = work()
    return {**numbers, "broker_cpu_s": round(side.cpu() - before, 3)}


def produce_row(shape: Shape) -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        side.node.create(shape.topic, shape.partitions)
        how = (shape.records(scale), shape.size, shape.batch_kib * 1024, shape.acks, shape.codec)
        return with_cpu(side, lambda: produce(side.node.bootstrap, shape.topic, *how))

    return Row(f"produce {shape}", "produce", "mb_per_s", "MiB/s", True, work)


def fetch_row(shape: Shape) -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        return with_cpu(side, lambda: bench("consume", side.node.bootstrap, shape.topic, shape.records(scale)))

    return Row(f"fetch {shape}", "fetch", "mb_per_s", "MiB/s", True, work)


def after_warm_up(side: Side, scale: Scale, work: Callable[[], Numbers]) -> Numbers:
    """The numbers of a work that warms up by itself, with the broker's CPU for what came after: at about the same rate."""
    before = side.cpu()
    numbers = work()
    cpu = (side.cpu() - before) * numbers["seconds"] / (numbers["seconds"] + scale.warmup)
    return {**numbers, "broker_cpu_s": round(cpu, 3), "broker_cpu_us_per_request": round(cpu / numbers["requests"] * 1e6, 2)}


def requests_row(connections: int) -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        topic = f"requests-{connections}"
        side.node.create(topic)
        request, error_at = produce_request(topic, 100)
        frame = base64.b64encode(request).decode()
        args = ("127.0.0.1", side.port, connections, scale.seconds, scale.warmup, frame, error_at)
        return after_warm_up(side, scale, lambda: bench("requests", *args))

    plural = "s" if connections > 1 else ""
    return Row(f"one record a request, {connections} connection{plural}", "requests", "per_s", "requests/s", True, work)


IDEMPOTENT = Shape(1024, 12, 16, "all", "none")
"""Kafka's producer is idempotent by default: the row of this shape is what the transactional one is compared with."""
TRANSACTIONAL = "produce 1 KiB, 12 p., 16 KiB batches, in transactions of 100 ms"


def transactional_row() -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        topic = "transactional"
        side.node.create(topic, IDEMPOTENT.partitions)
        how = (IDEMPOTENT.records(scale), IDEMPOTENT.size, IDEMPOTENT.batch_kib * 1024, IDEMPOTENT.acks, IDEMPOTENT.codec)
        more = ("--transactional-id", "bench", "--transaction-duration-ms", "100")
        return with_cpu(side, lambda: produce(side.node.bootstrap, topic, *how, *more))

    return Row(TRANSACTIONAL, "produce", "mb_per_s", "MiB/s", True, work)


def small_transactions_row() -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        side.node.create("small-transactions", 3)
        args = (side.node.bootstrap, "small-transactions", 3, 30, scale.seconds, scale.warmup)
        return after_warm_up(side, scale, lambda: bench("transactions", *args))

    return Row("transactions of 30 records in 3 partitions, one after another", "requests", "per_s", "commits/s", True, work)


def latency_row(rate: int, disturbed: bool) -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        topic = f"latency-{rate}-{disturbed}"
        side.node.create(topic)
        extra: list[str] = []
        if disturbed:
            fill_cold(side, scale)
            extra = ["cold=cold", "churn=churned"]
        args = (side.node.bootstrap, topic, rate, scale.seconds, scale.warmup, *extra)
        return with_cpu(side, lambda: bench("latency", *args))

    also = ", while cold data is read and the cleaner works" if disturbed else ""
    return Row(f"end to end at {rate:,}/s{also}", "latency", "p99_ms", "ms (p99)", False, work)


def fill_cold(side: Side, scale: Scale) -> None:
    """A topic whose pages are not in memory, and a compacted one with small segments."""
    if not (side.node.data / "cold-0").exists():
        side.node.create("cold")
        side.node.create("churned", cleanup_policy="compact", segment_bytes=str(4 << 20), min_cleanable_dirty_ratio="0.01")
        produce(side.node.bootstrap, "cold", scale.cold_megabytes * 1024, 1024, 131072, "1", "none")
    os.sync()
    forget(side.node.data / "cold-0")


def forget(folder: Path) -> None:
    """Take a folder's files out of the page cache."""
    for path in folder.glob("*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def memory_row(name: str, wait: float) -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        time.sleep(wait if scale is FULL else 0.2)
        return {"mb": round(side.memory(), 1)}

    return Row(f"memory, {name}", "memory", "mb", "MiB", False, work)


def start_row() -> Row:
    def work(side: Side, scale: Scale) -> Numbers:
        seconds = []
        for _ in range(scale.starts):
            side.node.stop()
            seconds.append(side.timed_start())
        return {"s": round(sorted(seconds)[len(seconds) // 2], 3)}

    return Row("start to first answer", "start", "s", "s", False, work)


def many_partitions_rows() -> Iterator[Row]:
    topic = "many"

    def start(side: Side, scale: Scale) -> Numbers:
        side.node.create(topic, scale.partitions)
        side.node.stop()
        return {"s": round(side.timed_start(), 3)}

    def memory(side: Side, scale: Scale) -> Numbers:
        side.node.describe(topic)
        time.sleep(2)
        return {"mb": round(side.memory(), 1)}

    def spread(side: Side, scale: Scale) -> Numbers:
        records = scale.megabytes * 170
        return with_cpu(side, lambda: bench("spread", side.node.bootstrap, topic, scale.partitions, records, 1024))

    yield Row("2,000 partitions: start to first answer", "start", "s", "s", False, start)
    yield Row("2,000 partitions: memory after the start", "memory", "mb", "MiB", False, memory)
    yield Row("2,000 partitions: produce 1 KiB across all", "produce", "mb_per_s", "MiB/s", True, spread)
    yield Row("2,000 partitions: memory after that", "memory", "mb", "MiB", False, memory)


def on_an_empty_node() -> list[Row]:
    """Rows on a node that has nothing yet, in this order."""
    return [start_row(), memory_row("idle", 3)]


def under_load() -> list[Row]:
    """Rows on one node, one after another: a fetch row reads what its produce row wrote."""
    rows = [row for shape in SHAPES for row in (produce_row(shape), fetch_row(shape))]
    rows += [transactional_row(), small_transactions_row()]
    rows += [requests_row(connections) for connections in (1, 8, 64)]
    rows += [latency_row(rate, disturbed) for disturbed in (False, True) for rate in (1_000, 10_000)]
    rows.append(memory_row("after all of the above", 3))
    return rows
