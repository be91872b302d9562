"""What is measured, and the bar of each row: declared here once, for the harness, the report and the page.

Costs are CPU microseconds a request or a record unless the unit says otherwise; less is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.pair import frames
from bench.pair.frames import Frame
from bench.pair.rows import BATCH_16K, BATCH_128K, FETCH_BYTES, FETCH_STEP_BATCHES, FETCH_STEPS, FILL, ONE_RECORD
from bench.warm.bars import Bar, Figure

SMALL_RECORDS = 1200
BATCH_OF_SMALL = frames.batch(SMALL_RECORDS, 100)
"""About 128 KiB of records of 100 bytes."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``group``: rows that share servers; ``unit``: what a cost is for; ``records``: in a unit, 0 where records are no matter;
    ``note``: stands below the table; ``control``: the limit does not serve this row, it is measured with one record a request on
    8 connections, only to see whether the machine stays the same."""

    name: str
    group: str
    unit: str = "request"
    bars: tuple[Bar, ...] = ()
    records: int = 0
    note: str = ""
    control: bool = False

    @property
    def topic(self) -> str:
        """The row's own topic."""
        return "".join(each if each.isalnum() else "-" for each in self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Row):
    """Requests at full speed by ``load.c``, or one record a request at a steady rate by ``tls_load.c`` in plaintext (``paced``).
    ``batches`` of a produce, each for another partition; without a ``batch`` it is a fetch of a MiB from each partition."""

    partitions: int = 1
    connections: int = 1
    in_flight: int = 1
    batch: bytes = b""
    batches: int = 1
    paced: bool = False

    @property
    def fill(self) -> int:
        """Batches of 16 KiB that each partition has before."""
        return 0 if self.batch else FILL

    @property
    def written(self) -> int:
        """Bytes that a request adds to the log."""
        return len(self.batch) * self.batches

    @property
    def is_bulk(self) -> bool:
        """Whether bytes are what it moves."""
        return self.batch != ONE_RECORD

    def frames(self, topic_id: bytes) -> Sequence[Frame]:
        """The requests, in the order in which they are sent."""
        if self.batch:
            groups = range(0, self.partitions, self.batches)
            return [frames.produce(self.topic, range(at, at + self.batches), self.batch, acks=1) for at in groups]
        step, least = FETCH_STEP_BATCHES * 15, self.partitions * (FETCH_BYTES - len(BATCH_16K))
        every = range(self.partitions)
        return [frames.fetch_several(topic_id, every, number * step, FETCH_BYTES, least) for number in range(FETCH_STEPS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Row):
    """Records of 100 bytes on three nodes, RF 3, acks=all: at ``rate`` a second, end to end, or with 0 at full speed. ``client``:
    a module that is run, with the arguments and the words of ``bench.wire_rate``."""

    partitions: int
    rate: int
    client: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaLoad(Row):
    """Kafka's own clients. ``amount``: records of a sample; ``fetches``: the topic is written before, and read."""

    partitions: int
    size: int
    batch: int
    amount: int
    fetches: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Row):
    """What a node costs without load: ``start``, ``memory``; of three nodes with 2,000 partitions ``idle``, ``many``."""

    kind: str


def _bars(cpu: float, rate: float) -> tuple[Bar, ...]:
    return (Bar(Figure.CPU, cpu), Bar(Figure.RATE, rate, least=True))


def _produce(name: str, batch: bytes, cpu: float | None, *, batches: int = 1, partitions: int = 12, records: int = 15) -> Load:
    bars = () if cpu is None else _bars(cpu, 1.5)
    return Load(
        name=name, group="node", bars=bars, partitions=partitions, in_flight=5, batch=batch, batches=batches, records=records
    )


def _one_record(connections: int, cpu: float) -> Load:
    name = f"produce one record, {connections} connection{'s' * (connections > 1)}"
    return Load(name=name, group="node", bars=_bars(cpu, 1.5), connections=connections, batch=ONE_RECORD, records=1)


LOADS = (
    _produce("produce 1 KiB, 16K x 1", BATCH_16K, 0.33),
    _produce("produce 1 KiB, 16K x 6", BATCH_16K, 0.40, batches=6, records=90),
    _produce("produce 1 KiB, 128K x 1", BATCH_128K, 0.33, partitions=1, records=126),
    Load(
        name="produce 100 B, 128K x 6",
        group="node",
        bars=(Bar(Figure.RECORDS, 2_000_000, least=True),),
        partitions=12,
        in_flight=5,
        batch=BATCH_OF_SMALL,
        batches=6,
        records=6 * SMALL_RECORDS,
        note="no bar on its CPU",
    ),
    _one_record(1, 0.40),
    _one_record(8, 0.33),
    _one_record(64, 0.45),
    Load(name="fetch, catching up, 1 partition", group="node", bars=_bars(0.5, 1.3), in_flight=2),
    Load(
        name="fetch, catching up, 12 partitions",
        group="node",
        bars=(Bar(Figure.CPU, 0.75, instead=Bar(Figure.LIMIT, 1.25)), Bar(Figure.RATE, 1.0, least=True)),
        partitions=12,
        in_flight=2,
    ),
    Load(
        name="tail at 10,000/s, one record a request",
        group="node",
        unit="record, produced and fetched",
        bars=(Bar(Figure.CPU, 0.4), Bar(Figure.P50, 0.2), Bar(Figure.P99, 1.5)),
        connections=8,
        batch=ONE_RECORD,
        records=1,
        paced=True,
    ),
)


def _replicated(partitions: int, client: str, words: str, p99_ms: float) -> Rate:
    return Rate(
        name=f"RF 3, 100 B at 10,000/s, {partitions} partition{'s' * (partitions > 1)}, {words}",
        group="cluster",
        unit="record, on three nodes",
        bars=(Bar(Figure.CPU, 0.5), Bar(Figure.P99, p99_ms)),
        records=1,
        control=True,
        partitions=partitions,
        rate=10_000,
        client=client,
    )


RATES = (
    Rate(
        name="RF 3, 100 B at full speed, 16 partitions, librdkafka",
        group="cluster",
        unit="record, on three nodes",
        bars=_bars(0.5, 2.0),
        records=1,
        note="CPU 0.5 of Kafka's is twice its records a CPU second",
        control=True,
        partitions=16,
        rate=0,
        client="bench.native_producer",
    ),
    *(_replicated(partitions, "bench.wire_rate", "raw requests", 5.0) for partitions in (1, 16)),
    *(_replicated(partitions, "bench.warm.native_rate", "librdkafka", 10.0) for partitions in (1, 16)),
)
STANDING = (
    Standing(name="start to the first answer", group="start", unit="s", bars=(Bar(Figure.COST, 0.3),), kind="start"),
    Standing(name="memory of a new node", group="start", unit="MiB", bars=(Bar(Figure.COST, 40),), kind="memory"),
    Standing(
        name="2,000 partitions, RF 3: idle CPU of three nodes", group="idle", unit="%", bars=(Bar(Figure.COST, 3),), kind="idle"
    ),
    Standing(
        name="2,000 partitions, RF 3: memory of the largest node",
        group="idle",
        unit="MiB",
        bars=(Bar(Figure.COST, 150),),
        kind="many",
    ),
)
COLD = (
    Load(
        name="fresh JVM: produce 1 KiB, 16K x 1",
        group="cold",
        partitions=12,
        in_flight=5,
        batch=BATCH_16K,
        records=15,
        note="the first 20,000 requests after the start of both nodes; Kafka's JVM is cold",
    ),
)


def _java(name: str, *, partitions: int, size: int, batch: int, amount: int, fetches: bool = False) -> JavaLoad:
    return JavaLoad(
        name=f"Java's tools: {name}",
        group="java",
        unit="record",
        records=1,
        control=True,
        partitions=partitions,
        size=size,
        batch=batch,
        amount=amount,
        fetches=fetches,
    )


JAVA = (
    _java("produce 1 KiB, 12 partitions, 16 KiB batches", partitions=12, size=1024, batch=16384, amount=500_000),
    _java("produce 100 B, 1 partition, 128 KiB batches", partitions=1, size=100, batch=131072, amount=3_000_000),
    _java("fetch 1 KiB, 12 partitions", partitions=12, size=1024, batch=131072, amount=1_000_000, fetches=True),
)
ROWS: tuple[Row, ...] = (*LOADS, *RATES, *STANDING, *COLD, *JAVA)
