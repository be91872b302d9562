"""The bulk lane inside a running Spark: rows land once, whatever of Spark's own memory is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from tidelog.pipeline.bulk import ingest
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.lake.reading import read_table
from tidelog.pipeline.lake.table import FileTable
from tidelog.spark.arrow import SQL_TYPES
from tidelog.testing import Broker

Offsets = list[tuple[int, int]]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 2)
        for partition in (0, 1):
            found.produce("t", *[(f"key {i}", f"value {i}") for i in range(100)], partition=partition)
        yield found


def delta(path: Path) -> FileTable:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    from tidelog.pipeline.lake.delta import DeltaFiles

    return DeltaFiles(str(path))


def in_delta(_: Any, path: Path) -> Offsets:
    import pyarrow as pa
    from deltalake import DeltaTable

    found = pa.table(DeltaTable(path).to_pyarrow_table(columns=["partition", "offset"])).to_pylist()
    return sorted((row["partition"], row["offset"]) for row in found)


def plain(path: Path) -> FileTable:
    return ManifestTable(str(path), partition_by=("date",))


def in_plain(spark: Any, path: Path) -> Offsets:
    rows = read_table(spark, str(path)).where("topic = 't' and value like 'value%'")
    return sorted((row.partition, row.offset) for row in rows.select("partition", "offset").collect())


@pytest.mark.parametrize(("make", "found"), [(plain, in_plain), (delta, in_delta)])
def test_rows_land_once_though_spark_forgets_its_last_batch_or_all_of_them(
    spark: Any, broker: Broker, tmp_path: Path, make: Callable[[Path], FileTable], found: Callable[[Any, Path], Offsets]
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"

    def run(checkpoint: Path) -> list[int]:
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", "startingOffsets": "earliest"}
        query = ingest(
            spark, name="events", options={**options, "maxOffsetsPerTrigger": "80"}, table=make(table), checkpoint=str(checkpoint)
        )
        query.awaitTermination()
        return [progress["numInputRows"] for progress in query.recentProgress]

    everything = [(partition, offset) for partition in (0, 1) for offset in range(100)]
    assert run(checkpoint) == [2, 2, 2]  # a row for each task
    assert found(spark, table) == everything
    # As if the driver had died after the table's commit and before Spark's: the batch is run again, into other files.
    for left in ("2", ".2.crc"):
        (checkpoint / "commits" / left).unlink(missing_ok=True)
    broker.produce("t", "value 100", partition=0)
    assert run(checkpoint) == [2, 1]
    assert found(spark, table) == sorted([*everything, (0, 100)])
    # A checkpoint that knows nothing goes on where the table ends.
    broker.produce("t", "value 100", partition=1)
    assert run(tmp_path / "another checkpoint") == [1]
    everything += [(0, 100), (1, 100)]
    assert found(spark, table) == sorted(everything)
    # What the batch that was run again wrote in vain was cleared away by the start after it.
    written = make(table)
    root = Path(written.prepare(list(SQL_TYPES)[:-1]).root)
    assert {str(path.relative_to(root)) for path in root.rglob("*.parquet")} == written.paths()
    assert found(spark, table) == sorted(everything)
