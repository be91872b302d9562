"""Which row goes where, and when a batch is closed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa

from tidelog.client.partitioning import partition_of
from tidelog.client.producer_settings import parse_producer_settings
from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import read_header
from tidelog.records.record import Record, iter_records
from tidelog.spark.appending import WriteFailed
from tidelog.spark.encoding import RowEncoder, check_columns

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
NOW = 1_700_000_000_000
Made = list[tuple[TopicPartition, bytearray]]


def encoded(*batches: Any, topic: str | None = "t", first: int = 0, partitions: int = 4, **kafka: str) -> Made:
    settings, _ = parse_producer_settings({name.replace("_", "."): text for name, text in kafka.items()})
    made: Made = []

    def closed(at: TopicPartition, rows: int, batch: bytearray) -> None:
        assert read_header(bytes(batch)).records_count == rows
        made.append((at, batch))

    encoder = RowEncoder(settings, topic, lambda name: partitions, closed, now_ms=NOW, first_partition=first)
    for batch in batches:
        encoder.add(batch)
    encoder.finish()
    return made


def records(made: Made) -> dict[TopicPartition, list[Record]]:
    found: dict[TopicPartition, list[Record]] = {}
    for at, batch in made:
        found.setdefault(at, []).extend(iter_records(bytes(batch)))
    return found


def columns(**named: Any) -> Any:
    return pa.RecordBatch.from_arrays(list(named.values()), names=list(named))


def test_keys_decide_as_in_java_and_rows_of_a_partition_stay_in_order() -> None:
    keys = [str(i % 7) for i in range(100)]
    found = records(encoded(columns(key=pa.array(keys), value=pa.array([str(i) for i in range(100)]))))
    assert {at.partition: [r.value for r in its] for at, its in found.items()} == {
        p: [str(i).encode() for i in range(100) if partition_of(keys[i].encode(), 4) == p] for p in {at.partition for at in found}
    }
    assert all(record.timestamp == NOW for its in found.values() for record in its)


def test_rows_without_a_key_fill_one_batch_after_another_in_one_partition_after_another() -> None:
    made = encoded(columns(value=pa.array([b"x" * 90] * 10)), first=3, batch_size="400")
    assert [at.partition for at, _ in made] == [3, 0, 1]
    assert [read_header(bytes(batch)).records_count for _, batch in made] == [4, 4, 2]


def test_a_partition_that_is_asked_for_wins_over_the_key() -> None:
    rows = columns(
        key=pa.array([b"a", b"a", None]), value=pa.array([b"1", b"2", b"3"]), partition=pa.array([2, None, 1], pa.int32())
    )
    found = records(encoded(rows))
    where = {record.value: at.partition for at, its in found.items() for record in its}
    assert where == {b"1": 2, b"2": partition_of(b"a", 4), b"3": 1}
    with pytest.raises(WriteFailed, match="for partition 4 of t, which has partitions 0 to 3"):
        encoded(columns(value=pa.array([b"1"]), partition=pa.array([4], pa.int32())))


def test_topics_headers_timestamps_and_nulls_are_written_as_they_are() -> None:
    rows = columns(
        topic=pa.array(["u", "t", "u"]),
        key=pa.array([b"a", None, b""]),
        value=pa.array([None, b"v", b""]),
        timestamp=pa.array([1_500, None, 2_000_999], pa.timestamp("us", tz="UTC")),
        headers=pa.array([[{"key": "ü", "value": b"x"}, {"key": "n", "value": None}], None, []], HEADERS),
    )
    found = records(encoded(rows, topic=None, partitions=1))
    first, last = found[TopicPartition("u", 0)]
    (middle,) = found[TopicPartition("t", 0)]
    assert (first.key, first.value, first.timestamp) == (b"a", None, 1)
    assert [(k if isinstance(k, str) else k.decode(), v) for k, v in first.headers] == [("ü", b"x"), ("n", None)]
    assert (middle.key, middle.value, middle.timestamp, tuple(middle.headers)) == (None, b"v", NOW, ())
    assert (last.key, last.value, last.timestamp) == (b"", b"", 2000)


def test_columns_that_are_slices_or_all_null_are_read_right() -> None:
    whole = columns(key=pa.array(["a", None, "c", "d"]), value=pa.array([b"1", b"2", None, b"4"]), topic=pa.array(["t"] * 4))
    times = pa.array([0, 1000, 2000, 3000], pa.timestamp("us", tz="UTC"))
    whole = whole.append_column("timestamp", times)
    found = records(encoded(whole.slice(1, 3), topic=None, partitions=1))[TopicPartition("t", 0)]
    assert [(r.key, r.value, r.timestamp) for r in found] == [(None, b"2", 1), (b"c", None, 2), (b"d", b"4", 3)]
    (tombstone,) = records(encoded(columns(key=pa.array([b"k"]), value=pa.array([None], pa.binary())), partitions=1)).popitem()[1]
    assert (tombstone.key, tombstone.value) == (b"k", None)
    assert encoded(whole.slice(0, 0)) == []


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(codec: str) -> None:
    made = encoded(columns(value=pa.array([b"again " * 100] * 50)), partitions=1, compression_type=codec)
    assert sum(len(batch) for _, batch in made) < 5000
    assert [r.value for r in records(made)[TopicPartition("t", 0)]] == [b"again " * 100] * 50


def test_memory_is_bounded_by_closing_the_largest() -> None:
    rows = [columns(value=pa.array([b"x" * 1000] * 40), partition=pa.array([i % 4 for i in range(40)], pa.int32()))] * 10
    made = encoded(*rows, batch_size="1000000", buffer_memory="65536")
    assert len(made) > 10
    assert sum(len(its) for its in records(made).values()) == 400


def test_a_row_that_no_request_holds_is_told() -> None:
    with pytest.raises(WriteFailed, match=r"kafka.max.request.size is 1024: raise it"):
        encoded(columns(value=pa.array([b"x" * 2000])), max_request_size="1024")


def test_rows_that_cannot_be_are_told() -> None:
    with pytest.raises(WriteFailed, match="A row has no topic"):
        encoded(columns(topic=pa.array(["t", None]), value=pa.array([b"", b""])), topic=None)
    with pytest.raises(WriteFailed, match="a header without a key"):
        encoded(columns(value=pa.array([b""]), headers=pa.array([[{"key": None, "value": b""}]], HEADERS)))


@pytest.mark.parametrize(
    ("schema", "topic", "told"),
    [
        ([("value", "binary"), ("amount", "int")], "t", "The column amount would not be written"),
        ([("value", "int")], "t", "value is int, and must be binary or string: cast it"),
        ([("key", "string")], "t", "There is no column value"),
        ([("value", "string")], None, "No topic is named"),
        ([("value", "string"), ("topic", "string")], "t", "drop one of them"),
    ],
)
def test_schemas_that_cannot_be_are_told(schema: list[tuple[str, str]], topic: str | None, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_columns(schema, topic)
