"""Columns as Arrow record batches, with the names and types of Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.spark.columns import HeaderColumn, Strings, Taken, Wanted

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TYPES: dict[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}
SQL_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


def wanted_columns(names: Sequence[str]) -> Wanted:
    """Which columns must be decoded for these names. ConfigError for a name that the source does not have."""
    for name in names:
        if name not in TYPES:
            raise ConfigError(f"The schema names a column {name!r}; the source has {', '.join(TYPES)}.")
    return Wanted(*(name in names for name in ("offset", "timestamp", "key", "value", "headers")))


def _valid(bitmap: bytes | bytearray, nulls: int) -> Any:
    return pa.py_buffer(bitmap) if nulls else None


def _binary(rows: int, column: Strings, kind: Any) -> Any:
    buffers = [_valid(column.valid, column.nulls), pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, rows, buffers, column.nulls)


def _numbers(rows: int, column: bytes | bytearray, kind: Any) -> Any:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(column)], 0)


def _headers(rows: int, column: HeaderColumn) -> Any:
    keys = _binary(column.pairs, column.keys, pa.string())
    values = _binary(column.pairs, column.values, pa.binary())
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    buffers = [_valid(column.valid, column.nulls), pa.py_buffer(column.offsets)]
    return pa.Array.from_buffers(HEADERS, rows, buffers, column.nulls, children=[pairs])


def _runs(runs: Sequence[tuple[int, int]]) -> Any:
    parts = [pa.repeat(pa.scalar(kind, pa.int32()), rows) for kind, rows in runs]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [pa.array([], pa.int32())])


def record_batch(names: Sequence[str], at: TopicPartition, taken: Taken, timestamp_types: Sequence[tuple[int, int]]) -> Any:
    """A pyarrow.RecordBatch with the columns ``names`` in that order, over the same memory as ``taken``."""
    rows = taken.rows
    columns = []
    for name in names:
        if name == "key" and taken.key is not None:
            columns.append(_binary(rows, taken.key, TYPES[name]))
        elif name == "value" and taken.value is not None:
            columns.append(_binary(rows, taken.value, TYPES[name]))
        elif name == "topic":
            columns.append(pa.repeat(pa.scalar(at.topic, pa.string()), rows))
        elif name == "partition":
            columns.append(pa.repeat(pa.scalar(at.partition, pa.int32()), rows))
        elif name == "offset" and taken.offset is not None:
            columns.append(_numbers(rows, taken.offset, TYPES[name]))
        elif name == "timestamp" and taken.timestamp is not None:
            columns.append(_numbers(rows, taken.timestamp, TYPES[name]))
        elif name == "timestampType":
            columns.append(_runs(timestamp_types))
        else:
            assert taken.headers is not None, f"the column {name} was not decoded"
            columns.append(_headers(rows, taken.headers))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([(name, TYPES[name]) for name in names]))
