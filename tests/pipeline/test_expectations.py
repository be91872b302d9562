"""What rules leave behind inside Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tidelog.pipeline.batches import BatchWriter
from tidelog.pipeline.flows import flows
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.yaml_text import parse

TEXT = """
pipeline: rules
kafka: {bootstrap.servers: localhost:1}
sources: {orders: {topics: [orders], value: text, on_error: drop}}
transforms:
  checked:
    from: orders
    sql: SELECT value, _offset FROM orders
    expect:
      short: {check: length(value) < 3, otherwise: drop}
      known: {check: "value <> 'wrong'", otherwise: fail}
sinks: {lake: {type: parquet, from: checked, path: FOLDER}}
"""
COLUMNS = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"


def held(spark: Any) -> int:
    """How many frames Spark keeps."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_nothing_of_a_batch_is_kept_when_it_has_landed_or_failed(spark: Any, tmp_path: Path) -> None:
    model = read_model(parse(TEXT.replace("FOLDER", str(tmp_path / "lake")), "test.yaml", {}))
    writer = BatchWriter(model, flows(model)[0])
    writer.check(spark)
    before = held(spark)
    for number, values in enumerate((["a", "long"], ["b", "wrong"])):
        rows = [("orders", 0, at, datetime(2026, 1, 1, tzinfo=UTC), None, value.encode()) for at, value in enumerate(values)]
        frame = spark.createDataFrame(rows, COLUMNS)
        if number == 0:
            writer.write(frame, number, ())
            assert writer.counts.broken == {("checked", "short"): 1, ("checked", "known"): 0}
        else:
            with pytest.raises(Exception, match="break the rule known"):
                writer.write(frame, number, ())
        assert held(spark) == before
