"""Columns as Arrow record batches that Arrow itself finds valid."""

from __future__ import annotations

import datetime

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import records_body
from tidelog.spark.arrow import SQL_TYPES, TYPES, record_batch, wanted_columns
from tidelog.spark.columns import Taken, columns

AT = TopicPartition("t", 3)
RECORDS = [
    RecordData(b"k", None, 1_700_000_000_123, (("h", b"v"), ("n", None))),
    RecordData(None, b"value", 1_700_000_000_124),
]


def taken(names: list[str], records: list[RecordData]) -> Taken:
    found = columns(wanted_columns(names))
    if records:
        batch = bytes(build_batch(records, base_offset=40))
        header = read_header(batch)
        found.append(records_body(batch, header), header.records_count, 40, header.base_timestamp, None, 0, 100)
    return found.take()


def test_a_batch_has_the_connectors_columns_in_the_order_asked_for() -> None:
    names = list(SQL_TYPES)
    batch = record_batch(names, AT, taken(names, RECORDS), [(0, 1), (1, 1)])
    batch.validate(full=True)
    assert batch.schema.names == names
    assert batch.to_pylist() == [
        {
            "key": b"k",
            "value": None,
            "topic": "t",
            "partition": 3,
            "offset": 40,
            "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.UTC),
            "timestampType": 0,
            "headers": [{"key": "h", "value": b"v"}, {"key": "n", "value": None}],
        },
        {
            "key": None,
            "value": b"value",
            "topic": "t",
            "partition": 3,
            "offset": 41,
            "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 124000, datetime.UTC),
            "timestampType": 1,
            "headers": None,
        },
    ]


@pytest.mark.parametrize("names", [["offset"], ["value", "topic"], ["partition"], ["headers", "timestampType"]])
def test_fewer_columns_are_a_batch_too(names: list[str]) -> None:
    batch = record_batch(names, AT, taken(names, RECORDS), [(0, 2)])
    batch.validate(full=True)
    assert (batch.num_rows, batch.schema.names) == (2, names)


def test_no_rows_are_a_batch_of_the_same_schema() -> None:
    names = list(TYPES)
    batch = record_batch(names, AT, taken(names, []), [])
    batch.validate(full=True)
    assert batch.num_rows == 0


def test_a_column_that_the_source_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="the source has key, value, topic"):
        wanted_columns(["val"])
