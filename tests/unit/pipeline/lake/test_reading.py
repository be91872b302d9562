"""Tables of plain Parquet as DataFrames: which columns they have. That rows are right is in tests/pipeline/test_bulk.py."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.pipeline.lake.manifests import TableState
from tidelog.pipeline.lake.reading import read_table, schema_of
from tidelog.pipeline.sinks.base import SinkError


def test_partition_columns_come_last_with_their_types() -> None:
    bulk = TableState(0, {"value": "binary", "offset": "bigint"}, ("topic", "partition", "date"))
    assert list(schema_of(bulk).items()) == [
        ("value", "binary"),
        ("offset", "bigint"),
        ("topic", "string"),
        ("partition", "int"),
        ("date", "date"),
    ]
    own = TableState(0, {"day": "date", "city": "int", "fare": "double"}, ("day", "city"))
    assert list(schema_of(own).items()) == [("fare", "double"), ("day", "date"), ("city", "int")]


def test_where_there_is_no_table_nothing_is_made_up(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="There is no table"):
        read_table(None, str(tmp_path))
