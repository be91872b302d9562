"""The Iceberg sink inside the PySpark it is for, 4.1: a stream of limited batches, a race, another writer, upserts.

Run by ``make spark-iceberg`` in an environment of its own; with another PySpark these are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")
from tests.spark.iceberg import ON_ITS_SPARK, batch, found, rows, sink

if not ON_ITS_SPARK:
    pytest.skip("Iceberg's Spark sink needs PySpark 4.1 (make spark-iceberg)", allow_module_level=True)

from tidelog.pipeline.model import Evolution, Mode
from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.sinks.iceberg import IcebergSink
from tidelog.testing import Broker


def test_batches_land_once_beside_zombies_and_other_writers(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one, zombie = sink(lake, "t"), sink(lake, "t")
    one.write(rows(lake, (1, 1)), batch(0, 0, 1))
    sink(lake, "t").write(rows(lake, (1, 1)), batch(0, 0, 1))
    stage = IcebergSink._stage

    def overtaken(self: IcebergSink, *args: Any) -> int:
        staged = stage(self, *args)
        if self is zombie:
            one.write(rows(lake, (2, 2)), batch(1, 1, 2))
        return staged

    monkeypatch.setattr(IcebergSink, "_stage", overtaken)
    zombie.write(rows(lake, (2, 2)), batch(1, 1, 2))
    assert found(lake, "t") == [(1, 1), (2, 2)]

    def beside_another_writer(self: IcebergSink, *args: Any) -> int:
        staged = stage(self, *args)
        rows(lake, (100, 100)).writeTo("lake.db.t").append()
        return staged

    monkeypatch.setattr(IcebergSink, "_stage", beside_another_writer)
    one.write(rows(lake, (3, 3)), batch(2, 2, 3))
    monkeypatch.undo()
    last = sink(lake, "t")
    last.write(rows(lake, (3, 3)), batch(2, 2, 3))
    assert last.last_committed() == batch(2, 2, 3)
    assert found(lake, "t") == [(1, 1), (2, 2), (3, 3), (100, 100)]
    with pytest.raises(SinkError, match="another driver writes under this name"):
        last.write(rows(lake, (9, 9)), batch(2, 2, 9))


def test_upserts_land_once_and_keep_the_newest(lake: Any) -> None:
    upsert = sink(lake, "u", mode=Mode.UPSERT, keys=("n",), order_by="m")
    upsert.write(rows(lake, (1, 1), (2, 2)), batch(0, 0, 2))
    upsert.write(rows(lake, (1, 5), (2, 1)), batch(1, 2, 4))
    upsert.write(rows(lake, (1, 4)), batch(1, 2, 4))
    assert found(lake, "u") == [(1, 5), (2, 2)]


def test_an_upsert_grows_fields_inside_of_structs_or_refuses_them(lake: Any) -> None:
    old = "1 n, 1 m, named_struct('x', 1) place, array(named_struct('x', 1)) items"
    new = "1 n, 2 m, named_struct('x', 5000000000L, 'y', 'new') place, array(named_struct('x', 5000000000L, 'y', 'new')) items"
    upsert = {"mode": Mode.UPSERT, "keys": ("n",), "order_by": "m"}
    sink(lake, "nested", **upsert).write(lake.sql(f"SELECT {old}"), batch(0, 0, 1))
    with pytest.raises(SinkError, match=r"place\.x \(bigint in the rows, int in the table\).*place\.y \(string in the rows, not"):
        sink(lake, "nested", **upsert).write(lake.sql(f"SELECT {new}"), batch(1, 1, 2))
    sink(lake, "nested", evolution=Evolution.MERGE, **upsert).write(lake.sql(f"SELECT {new}"), batch(1, 1, 2))
    (row,) = lake.table("lake.db.nested").collect()
    assert row.place.asDict() == {"x": 5_000_000_000, "y": "new"}
    assert [item.asDict() for item in row["items"]] == [{"x": 5_000_000_000, "y": "new"}]


def test_the_source_limits_itself_and_goes_on_where_it_was(lake: Any, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("t", 1)
        broker.produce("t", *(f"{i}" for i in range(50)))
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", "startingOffsets": "earliest"}
        target = sink(lake, "s")

        def land(frame: Any, number: int) -> None:
            limits = frame.selectExpr("min(offset)", "max(offset) + 1").collect()[0]
            target.write(frame.selectExpr("offset n", "offset m"), batch(number, *limits))

        sizes = []
        for _ in range(3):
            stream = lake.readStream.format("tidelog").options(**options, maxOffsetsPerTrigger="20").load()
            writer = stream.writeStream.foreachBatch(land).option("checkpointLocation", str(tmp_path / "c"))
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            sizes += [progress["numInputRows"] for progress in query.recentProgress]
    assert found(lake, "s") == [(i, i) for i in range(50)]
    assert len(sizes) == 3
