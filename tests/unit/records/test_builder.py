"""Batches made here are byte for byte what Kafka makes, where the codec's library allows that."""

from collections.abc import Container
from pathlib import Path

import pytest

from tidelog.records.batch import HEADER_SIZE, crc_is_valid, iter_headers, read_header
from tidelog.records.builder import RecordData, build_batch, empty_batch, encode_record, rebuild_batch, renumber_records
from tidelog.records.record import Record, iter_records, iter_spans, records_body

GOLDEN = Path(__file__).parents[2] / "golden" / "batches"


def rebuilt_with(data: bytes | bytearray, offsets: Container[int], **settings: int) -> bytearray:
    """The batch with only the records at ``offsets``."""
    header = read_header(data)
    body = records_body(data, header)
    kept = [span for span in iter_spans(body, header.records_count) if header.base_offset + span.offset_delta in offsets]
    return rebuild_batch(header, body, kept, **settings)


FILES = ["transaction_state.log", "consumer_offsets.log", "cluster_metadata.log", "bootstrap.checkpoint", "snapshot.checkpoint"]


@pytest.mark.parametrize("name", FILES)
def test_rebuilding_with_all_records_gives_kafkas_bytes(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    for header in iter_headers(data):
        batch = data[header.position : header.end_position]
        assert rebuilt_with(batch, range(1 << 40)) == batch


@pytest.mark.parametrize(("codec", "name"), [(0, "none"), (2, "snappy"), (3, "lz4")])
def test_building_gives_the_bytes_of_kafkas_builder(codec: int, name: str) -> None:
    data = (GOLDEN / f"java_{name}.batch").read_bytes()
    records = [RecordData(record.key, record.value, record.timestamp, record.headers) for record in iter_records(data)]
    assert build_batch(records, codec=codec, producer_id=4711, producer_epoch=3, base_sequence=17) == data


@pytest.mark.parametrize("codec", range(5))
def test_what_was_built_is_read(codec: int) -> None:
    records = [RecordData(b"k", None, 30, (("a", None), (b"\xff", b"b"))), RecordData(None, b"v", 20)]
    data = build_batch(
        records, codec=codec, base_offset=7, leader_epoch=3, transactional=True, producer_id=9, producer_epoch=1, base_sequence=4
    )
    header = read_header(data)
    assert crc_is_valid(data, header)
    assert (header.leader_epoch, header.base_timestamp, header.max_timestamp, header.last_offset) == (3, 30, 30, 8)
    assert header.is_transactional and (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 4)
    assert list(iter_records(data)) == [
        Record(7, 30, b"k", None, (("a", None), ("\udcff", b"b"))),
        Record(8, 20, None, b"v"),
    ]


def test_a_batch_of_no_records_is_refused() -> None:
    with pytest.raises(ValueError, match="no records"):
        build_batch([])
    with pytest.raises(ValueError, match="no records"):
        rebuilt_with(build_batch([RecordData(None, None)]), ())


def original(**settings: object) -> bytearray:
    records = [RecordData(b"%d" % i, b"v", 1000 + i) for i in range(5)]
    return build_batch(records, base_offset=50, leader_epoch=2, producer_id=8, producer_epoch=1, base_sequence=30, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", range(5))
def test_compaction_keeps_offsets_epochs_and_sequences(codec: int) -> None:
    data = original(codec=codec)
    header = read_header(data)
    kept = [record for record in iter_records(data) if record.offset in (51, 53)]
    rebuilt = rebuilt_with(data, (51, 53))
    after = read_header(rebuilt)
    assert list(iter_records(rebuilt)) == kept
    assert (after.base_offset, after.last_offset, after.last_sequence, after.leader_epoch) == (50, 54, 34, 2)
    assert (after.records_count, after.max_timestamp, after.base_timestamp) == (2, 1003, 1001)
    assert after.attributes == header.attributes
    assert crc_is_valid(rebuilt, after)


def test_the_delete_horizon_takes_the_place_of_the_base_timestamp_and_stays() -> None:
    data = original()
    records = list(iter_records(data))
    marked = rebuilt_with(data, range(100), delete_horizon_ms=90_000)
    header = read_header(marked)
    assert (header.delete_horizon_ms, header.base_timestamp) == (90_000, 90_000)
    assert list(iter_records(marked)) == records
    again = rebuilt_with(marked, (50,))
    assert read_header(again).delete_horizon_ms == 90_000
    assert list(iter_records(again)) == records[:1]


def test_log_append_time_survives_compaction() -> None:
    data = original(log_append_time=True)
    kept = list(iter_records(data))[:2]
    rebuilt = rebuilt_with(data, (50, 51))
    assert read_header(rebuilt).log_append_time
    assert list(iter_records(rebuilt)) == kept
    assert {record.timestamp for record in kept} == {1004}


def test_an_empty_batch_keeps_what_a_producer_and_a_reader_need() -> None:
    data = original(codec=3, transactional=True, delete_horizon_ms=4)
    before, after = read_header(data), read_header(empty_batch(read_header(data)))
    assert after.size == HEADER_SIZE
    assert (after.records_count, after.codec, after.base_timestamp, after.delete_horizon_ms) == (0, 0, -1, None)
    assert after.is_transactional
    for field in (
        "base_offset",
        "last_offset",
        "leader_epoch",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
    ):
        assert getattr(after, field) == getattr(before, field)
    assert list(iter_records(empty_batch(before))) == []


def test_renumbering_changes_only_offsets() -> None:
    records = [RecordData(b"key%d" % i, bytes(i), i, (("h", b"%d" % i),)) for i in range(200)]
    body = b"".join(encode_record(record, 1000 - 3 * i, record.timestamp) for i, record in enumerate(records))
    right = b"".join(encode_record(record, i, record.timestamp) for i, record in enumerate(records))
    assert renumber_records(body, 200) == right
    assert [span.offset_delta for span in iter_spans(right, 200)] == list(range(200))


def test_a_rebuilt_body_is_the_body_that_was_read() -> None:
    data = (GOLDEN / "java_none.batch").read_bytes()
    header = read_header(data)
    assert renumber_records(records_body(data, header), header.records_count) == data[HEADER_SIZE:]
