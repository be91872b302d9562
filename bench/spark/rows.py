"""What is measured of Spark's half. Each row yields a number for each side, all in the same minute of the same session."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.spark.processes import cpu_seconds
from tests.spark.rows import Kind, fill, frame, topic_of

CONNECTOR, SOURCE, BULK = "connector", "tidelog", "bulk lane"
KINDS = (
    Kind("100 B", "none"),
    Kind("100 B, lz4", "lz4"),
    Kind("1 KiB", "none", size=1024),
    Kind("1 KiB, zstd", "zstd", size=1024),
)
"""Every fifth record has three headers; columns are all, headers included; CRCs are checked."""


@dataclass(slots=True)
class World:
    """What rows work with. ``own``: the root of the processes that count; ``others``: those below it that do not."""

    spark: Any
    bootstrap: str
    folder: Path
    records: int
    own: int
    others: tuple[int, ...]
    filled: set[str] = field(default_factory=set)

    def fill(self, kind: Kind) -> None:
        """The topic, once."""
        if topic_of(kind) not in self.filled:
            fill(self.bootstrap, kind, self.records)
            self.filled.add(topic_of(kind))

    def cost(self, work: Callable[[], None]) -> dict[str, float]:
        """CPU and wall seconds, and thousand records for each second of CPU."""
        before, began = cpu_seconds([self.own], self.others), time.monotonic()
        work()
        spent = cpu_seconds([self.own], self.others) - before
        return {
            "krec_per_cpu_s": round(self.records / spent / 1000, 1),
            "cpu_s": round(spent, 2),
            "wall_s": round(time.monotonic() - began, 2),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the result: ``sides`` are measured in turns, ``goal`` is what the last must reach against the first."""

    name: str
    kind: Kind
    sides: tuple[tuple[str, Callable[[World, Kind, Path], None]], ...]
    goal: float


def _read(source: str) -> Callable[[World, Kind, Path], None]:
    def work(world: World, kind: Kind, _: Path) -> None:
        frame(world.spark, kind, source, world.bootstrap).write.format("noop").mode("overwrite").save()

    return work


def _options(world: World, kind: Kind) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": world.bootstrap,
        "subscribe": topic_of(kind),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }


def _stream_to_parquet(source: str) -> Callable[[World, Kind, Path], None]:
    """Spark's own way to land a topic exactly once: its file sink with its checkpoint."""

    def work(world: World, kind: Kind, folder: Path) -> None:
        stream = world.spark.readStream.format(source).options(**_options(world, kind)).load()
        writer = stream.writeStream.format("parquet").option("path", str(folder / "table"))
        writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()

    return work


def _bulk(world: World, kind: Kind, folder: Path) -> None:
    from tidelog.pipeline.bulk import ingest
    from tidelog.pipeline.lake.manifests import ManifestTable

    table = ManifestTable(str(folder / "table"), partition_by=())
    query = ingest(world.spark, name="bench", options=_options(world, kind), table=table, checkpoint=str(folder / "checkpoint"))
    query.awaitTermination()
    rows = sum(file.rows for file in table.state().files.values())
    assert rows == world.records, f"{rows} of {world.records} rows landed"


ROWS = (
    *(Row(f"read {kind.name}", kind, ((CONNECTOR, _read("kafka")), (SOURCE, _read("tidelog"))), goal) for kind, goal in zip(
        KINDS, (1.5, 1.5, 1.0, 1.0), strict=True
    )),
    *(
        Row(
            f"land {kind.name} in Parquet",
            kind,
            ((CONNECTOR, _stream_to_parquet("kafka")), (SOURCE, _stream_to_parquet("tidelog")), (BULK, _bulk)),
            3.0,
        )
        for kind in KINDS
    ),
)  # fmt: skip


def measure(world: World, rows: tuple[Row, ...], rounds: int) -> Iterator[tuple[Row, int, str, dict[str, float]]]:
    """Every row in turns, the sides in turns within it; the first turn of each row warms up and is left out."""
    for row in rows:
        world.fill(row.kind)
        for turn in range(rounds + 1):
            order = row.sides[turn % len(row.sides) :] + row.sides[: turn % len(row.sides)]
            for side, work in order:
                numbers = one_turn(world, row.kind, work)
                if turn:
                    yield row, turn, side, numbers


def one_turn(world: World, kind: Kind, work: Callable[[World, Kind, Path], None]) -> dict[str, float]:
    """What one side costs once; what it has written is taken away."""
    folder = world.folder / "landed"
    try:
        return world.cost(lambda: work(world, kind, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
