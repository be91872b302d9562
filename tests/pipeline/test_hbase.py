"""Rows into HBase, once: by key and by record, over a batch that is run again, a lost checkpoint, and a gateway that is away."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.served import served
from tests.pipeline.world import Lake
from tidelog.pipeline.sinks.base import SinkError
from tidelog.testing import Broker

RIDES = """\
pipeline: rides
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides: {topics: [rides], value: {format: json, schema: "id string, zone string, fare double"}, on_error: drop}
transforms:
  fares: {from: rides, sql: "SELECT id, zone, fare, _topic, _partition, _offset, _timestamp FROM rides"}
sinks:
  every: {type: hbase, from: fares, url: "HBASE", table: every, columns: "place:zone"}
  newest: {type: hbase, from: fares, mode: upsert, keys: [id], url: "HBASE", table: newest, encoding: binary}
"""
Row = dict[str, tuple[int, bytes]]


def ride(name: str, zone: str | None, fare: float) -> tuple[str, str]:
    return name, json.dumps({"id": name, "zone": zone, "fare": fare})


def scanned(url: str, table: str) -> dict[bytes, Row]:
    """A table's cells with their timestamps."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", f"/{table}/*", headers={"Accept": "application/json"})
    answer = connection.getresponse().read()
    connection.close()
    text = base64.b64decode
    return {
        text(row["key"]): {text(cell["column"]).decode(): (cell["timestamp"], text(cell["$"])) for cell in row["Cell"]}
        for row in json.loads(answer)["Row"]
    }


@pytest.fixture
def hbase(tmp_path: Path) -> Iterator[str]:
    """The URL of its REST server."""
    with served("hbase", tmp_path) as url:
        yield url


def test_rows_are_in_hbase_once_though_a_batch_is_run_again_and_the_checkpoint_is_lost(
    spark: Any, broker: Broker, hbase: str, tmp_path: Path
) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES.replace("HBASE", hbase))
    broker.produce("rides", ride("a", "north", 1), ride("b", "south", 2), ride("a", None, 3))
    assert lake.run().records == 3
    first = scanned(hbase, "every"), scanned(hbase, "newest")
    assert sorted(first[0]) == [b"rides\0%010d\0%019d" % (0, offset) for offset in range(3)]
    record = first[0][b"rides\0%010d\0%019d" % (0, 1)]
    when = broker.messages("rides")[1].timestamp_ms
    values = {
        "d:id": b"b",
        "place:zone": b"south",
        "d:fare": b"2.0",
        "d:_topic": b"rides",
        "d:_partition": b"0",
        "d:_offset": b"1",
    }
    assert record["d:_timestamp"][0] == when
    assert {name: record[name] for name in values} == {name: (when, value) for name, value in values.items()}
    assert first[1][b"a"]["d:fare"][1] == bytes.fromhex("4008000000000000")  # Java's Bytes.toBytes(3.0)
    assert first[1][b"a"]["d:zone"][1] == b""  # NULL hides the north
    # Rows that are there, but nobody heard: the marker goes, and Spark's own note of the batch.
    connection = http.client.HTTPConnection(urlsplit(hbase).netloc)
    for sink in ("every", "newest"):
        connection.request("DELETE", f"/tidelog_batches/tidelog%3Arides%3A{sink}")
        assert connection.getresponse().read() == b""
    connection.close()
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoints" / "source-rides" / "commits" / name).unlink(missing_ok=True)
    lake.run()
    assert (scanned(hbase, "every"), scanned(hbase, "newest")) == first
    shutil.rmtree(tmp_path / "checkpoints")
    broker.produce("rides", ride("b", "east", 4))
    assert lake.run().records == 1
    assert len(scanned(hbase, "every")) == 4
    newest = scanned(hbase, "newest")
    assert {key: row["d:zone"][1] for key, row in newest.items()} == {b"a": b"", b"b": b"east"}
    lake.change("table: newest,", "table: newest, family: other,")
    with pytest.raises(
        SinkError, match=r"has the families d, and not other: add them in HBase's shell \(alter 'newest', 'other'\)"
    ):
        lake.run()


def test_a_gateway_that_is_not_there_is_told_with_what_to_start(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES.replace("HBASE", "http://127.0.0.1:1"))
    with pytest.raises(SinkError, match=r"http://127.0.0.1:1 does not answer as it should .*ConnectionRefused.*hbase rest start"):
        lake.run()
