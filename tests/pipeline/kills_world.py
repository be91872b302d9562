"""What is under the kills: records that keep coming, and pipelines from their topic into every kind of sink."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka

from tests.pipeline import landed, quick_spark

SINKS = ("topic", "delta", "parquet")
ICEBERG = ("iceberg",)
"""On the PySpark that Iceberg has a release for."""
BULK = ("bulk-parquet", "bulk-delta")
"""Sinks of the bulk lane: a pipeline of its own in the same driver, since an engine is a pipeline's."""
SOURCE, OUT = "events", "out"
PARTITIONS = 4
RECORDS_PER_S = 60
TRIGGERS = {"spark": "200ms", "bulk": "3s"}
"""Batches of the bulk lane are so quick that without a pause they would take what the others need."""


def value(number: int) -> str:
    """A record's value. Compiled code decodes most; every fiftieth has a number for a text, and is left to Spark."""
    return json.dumps({"number": number, "text": number if number % 50 == 7 else "value"})


@dataclass
class Load:
    """Records that keep coming. Idempotent: what librdkafka retries is in the topic once."""

    bootstrap: str
    sent: int = 0
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        config = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "delivery.timeout.ms": 300_000, "log_level": 0}
        producer = confluent_kafka.Producer(config)
        while not self._stop.wait(0.1):
            for _ in range(RECORDS_PER_S // 10):
                key = f"key {self.sent % 97}"
                producer.produce(SOURCE, value(self.sent), key, partition=self.sent % PARTITIONS, on_delivery=self._delivered)
                self.sent += 1
            producer.poll(0)
        producer.flush(300)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))

    def stop(self, *, wait: bool = True) -> None:
        """No more; what was sent arrives, where that is waited for."""
        self._stop.set()
        if self._thread is not None and wait:
            self._thread.join()


def pipelines(bootstrap: str, folder: Path, sinks: tuple[str, ...], master: str) -> dict[str, str]:
    """The pipelines under test, by name. A row is known by the partition and offset that it came from."""
    lanes = {"spark": [sink for sink in sinks if sink not in BULK], "bulk": [sink for sink in sinks if sink in BULK]}
    parts = {"spark": spark_parts, "bulk": bulk_parts}
    return {lane: _text(lane, bootstrap, folder, parts[lane](folder, names), master) for lane, names in lanes.items() if names}


def queries(sinks: tuple[str, ...]) -> set[str]:
    """What the queries of these pipelines are called in the lines that they print."""
    return {sink.replace("-", "_") if sink in BULK else SOURCE for sink in sinks}


def found(sink: str, bootstrap: str, folder: Path) -> list[str]:
    """The rows of a sink, as ``partition:offset``, read without tidelog."""
    if sink == "topic":
        return [(message.value() or b"").decode() for message in landed.topic(bootstrap, OUT)]
    if sink == "iceberg":
        return landed.column(landed.iceberg_files(folder / "warehouse" / "db" / "rows"), "value")
    of_kind = landed.delta_files if sink.endswith("delta") else landed.manifest_files
    files = of_kind(folder / sink)
    return landed.places(files) if sink in BULK else landed.column(files, "value")


def _text(lane: str, bootstrap: str, folder: Path, parts: str, master: str) -> str:
    options = quick_spark.java_options()
    catalog = f"""\
  sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog
  sql.catalog.lake.type: hadoop
  sql.catalog.lake.warehouse: {folder}/warehouse
"""
    # Executors of one core each, so that one goes on while the other is dead.
    return f"""\
pipeline: kills-{lane}
kafka:
  bootstrap.servers: {bootstrap}
  retry.backoff.ms: 50
checkpoint: {folder}/checkpoint-{lane}
trigger: {TRIGGERS[lane]}
{parts}spark:
  master: {master}
  driver.memory: 900m
  driver.extraJavaOptions: '{options}'
  executor.memory: 600m
  executor.cores: 1
  executor.extraJavaOptions: '{options}'
  task.maxFailures: 1000
  sql.shuffle.partitions: 1
  excludeOnFailure.enabled: false
{catalog if "type: iceberg" in parts else ""}"""


def bulk_parts(folder: Path, sinks: list[str]) -> str:
    """A source and a table for each, of the bulk lane."""
    names = {sink: sink.replace("-", "_") for sink in sinks}
    sources = [f"  {names[sink]}: {{topics: [{SOURCE}], max_records: 20000}}\n" for sink in sinks]
    tables = [
        f"  {names[sink]}: {{type: {sink.removeprefix('bulk-')}, from: {names[sink]}, path: {folder}/{sink}}}\n" for sink in sinks
    ]
    return f"engine: bulk\nsources:\n{''.join(sources)}sinks:\n{''.join(tables)}"


def spark_parts(folder: Path, sinks: list[str]) -> str:
    """One source into all of them."""
    tables = {
        "delta": f"  delta: {{type: delta, from: rows, path: {folder}/delta}}\n",
        "parquet": f"  parquet: {{type: parquet, from: rows, path: {folder}/parquet}}\n",
        "iceberg": "  iceberg: {type: iceberg, from: rows, table: lake.db.rows}\n",
        # Half of its batches are larger than this: they wait in the staging topic.
        "topic": f"  topic: {{type: topic, from: rows, topic: {OUT}, inlineBytes: 2000}}\n",
    }
    return f"""\
sources:
  {SOURCE}:
    topics: [{SOURCE}]
    start: earliest
    max_records: 20000
    key: text
    value: {{format: json, schema: "number bigint not null, text string"}}
    on_error: fail
transforms:
  rows:
    from: {SOURCE}
    sql: SELECT concat(_partition, ':', _offset) AS value FROM {SOURCE}
sinks:
{"".join(tables[name] for name in sinks)}"""
