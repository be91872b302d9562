"""What a Delta sink says of itself before it writes anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tidelog.pipeline.reading import read_model
from tidelog.pipeline.sinks.delta import KEEPS_SOURCE, DeltaSink, make
from tidelog.pipeline.yaml_text import parse

TEXT = """
pipeline: p
kafka: {bootstrap.servers: localhost:1}
sources: {s: {topics: [t], value: text}}
sinks: {lake: {type: delta, from: s, path: lake, MODE}}
"""


def sink(mode: str, **settings: str) -> DeltaSink:
    """A sink whose table is not there yet."""
    model = read_model(parse(TEXT.replace("MODE", mode), "test.yaml", {}))
    settings |= {"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}
    tables = SimpleNamespace(isDeltaTable=lambda session, path: False)
    delta = SimpleNamespace(tables=SimpleNamespace(DeltaTable=tables))
    spark: Any = SimpleNamespace(conf=settings, _jvm=SimpleNamespace(io=SimpleNamespace(delta=delta)), _jsparkSession=None)
    made = make(model.sinks[0], model)
    made.check(spark)
    return made


@pytest.mark.parametrize("mode", ["mode: append", "mode: upsert, keys: [value]"])
def test_rows_are_taken_once_unless_a_backfill_compares_them_with_the_table(mode: str) -> None:
    made = sink(mode)
    assert made.takes_once
    made.fill_in(("_topic", "_partition", "_offset"))
    assert made.takes_once == ("upsert" in mode)


def test_where_a_merge_does_not_keep_its_source_rows_are_read_more_than_once() -> None:
    assert not sink("mode: upsert, keys: [value]", **{KEEPS_SOURCE: "None"}).takes_once
    assert sink("mode: append", **{KEEPS_SOURCE: "none"}).takes_once
