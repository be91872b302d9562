"""The source inside a running Spark: batches and streams over a node, restarts, and errors as the user sees them.

What needs no JVM is in ``tests/unit/spark``; that rows are the JVM connector's, by the million, is ``make spark-rows``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidelog.testing import Broker

SMALL_FETCHES = {"kafka.max.partition.fetch.bytes": "2048"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 2)
        for start in range(0, 600, 100):
            values = [(f"key {i}", f"value {i}") for i in range(start, start + 100)]
            found.produce("t", *values, partition=start // 100 % 2)
        yield found


def options(broker: Broker, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", **more}


def batch(spark: Any, broker: Broker, **more: str) -> Any:
    return spark.read.format("tidelog").options(**options(broker, **more)).load()


def land(spark: Any, broker: Broker, folder: Path, **more: str) -> Any:
    """Everything that is there, into Parquet files; the finished query."""
    stream = spark.readStream.format("tidelog").options(**options(broker, startingOffsets="earliest", **more)).load()
    writer = stream.selectExpr("partition", "offset", "cast(value as string) value").writeStream.format("parquet")
    query = (
        writer.options(path=str(folder / "rows"), checkpointLocation=str(folder / "offsets")).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    return query


def landed(spark: Any, folder: Path) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in spark.read.parquet(str(folder / "rows")).select("partition", "offset").collect())


EVERYTHING = [(partition, offset) for partition in (0, 1) for offset in range(300)]


def test_a_batch_has_every_row_with_the_connectors_columns(spark: Any, broker: Broker) -> None:
    rows = batch(spark, broker, includeHeaders="true", **SMALL_FETCHES)
    assert [field.simpleString() for field in rows.schema] == [
        "key:binary",
        "value:binary",
        "topic:string",
        "partition:int",
        "offset:bigint",
        "timestamp:timestamp",
        "timestampType:int",
        "headers:array<struct<key:string,value:binary>>",
    ]
    found = rows.selectExpr("partition", "offset", "cast(key as string)", "cast(value as string)").collect()
    assert sorted((row[0], row[1]) for row in found) == EVERYTHING
    assert {(row[2][4:], row[3][6:]) for row in found} == {(str(i), str(i)) for i in range(600)}


def test_conditions_and_fewer_columns_give_the_same_rows(spark: Any, broker: Broker) -> None:
    rows = batch(spark, broker).where("partition = 1 and offset >= 10 and offset < 13")
    assert [row.offset for row in rows.orderBy("offset").collect()] == [10, 11, 12]
    few = spark.read.format("tidelog").schema("offset bigint, value binary").options(**options(broker)).load()
    assert few.columns == ["offset", "value"]
    assert few.count() == 600


def test_a_stream_in_many_batches_lands_every_row_once_and_goes_on_where_it_was(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    query = land(spark, broker, tmp_path, maxOffsetsPerTrigger="250", **SMALL_FETCHES)
    assert query.exception() is None
    assert [progress["numInputRows"] for progress in query.recentProgress] == [250, 250, 100]
    assert landed(spark, tmp_path) == EVERYTHING
    broker.produce("t", "one more")
    land(spark, broker, tmp_path)
    assert landed(spark, tmp_path) == sorted([*EVERYTHING, (0, 300)])


def test_an_error_says_what_to_do_where_the_user_sees_it(spark: Any, broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="Did you mean failOnDataLoss"):
        batch(spark, broker, failOnDatLoss="false")
    with pytest.raises(Exception, match="There is no topic 'nope' on this cluster"):
        batch(spark, broker, subscribe="nope").count()
    land(spark, broker, tmp_path)
    # The topic is taken away and made again under the query's feet.
    broker.reset()
    broker.create_topic("t", 2)
    broker.produce("t", "other")
    with pytest.raises(Exception, match=r"topic t was deleted and created again.*failOnDataLoss=false"):
        land(spark, broker, tmp_path)
    land(spark, broker, tmp_path, failOnDataLoss="false")
    assert len(landed(spark, tmp_path)) == 601
