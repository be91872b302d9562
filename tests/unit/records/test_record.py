"""Records inside batches: what Kafka's builder wrote is read as it was meant; what is no record is refused."""

from pathlib import Path

import pytest

from tidelog.records.batch import CorruptBatch, iter_headers, read_header
from tidelog.records.builder import RecordData, assemble, build_batch, encode_record, write_varint
from tidelog.records.compression import DecompressionBomb
from tidelog.records.record import Record, iter_records, iter_spans, read_varint, records_body, validate_records

GOLDEN = Path(__file__).parents[2] / "golden" / "batches"
FOREVER = 1 << 62


def java_record(i: int) -> Record:
    """As tests/golden/batches/README.md describes it."""
    return Record(
        i,
        1795254735538 + 3 * i,
        None if i % 4 == 0 else f"key-{i}".encode(),
        None if i % 5 == 0 else f"value number {i} {'x' * (i * 40)}".encode(),
        () if i % 3 == 0 else ((f"h\xe9{i}", f"v{i}".encode()), ("null", None)),
    )


def raw_batch(body: bytes, count: int, **settings: int) -> bytearray:
    """A batch around a body that no builder would make."""
    fields = {
        "base_offset": 0,
        "last_offset_delta": count - 1,
        "leader_epoch": -1,
        "attributes": 0,
        "base_timestamp": 1000,
        "max_timestamp": 1000,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
    }
    return assemble(body, count, **(fields | settings))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_kafkas_own_builder(codec: str) -> None:
    data = (GOLDEN / f"java_{codec}.batch").read_bytes()
    assert list(iter_records(data)) == [java_record(i) for i in range(40)]


def test_batches_in_the_middle_of_a_file() -> None:
    data = (GOLDEN / "consumer_offsets.log").read_bytes()
    headers = list(iter_headers(data))
    offsets = [record.offset for header in headers for record in iter_records(data, header)]
    assert offsets == list(range(headers[-1].next_offset))


def test_spans_tell_the_same_as_records() -> None:
    data = (GOLDEN / "java_none.batch").read_bytes()
    header = read_header(data)
    body = records_body(data, header)
    for record, span in zip(iter_records(data), iter_spans(body, header.records_count), strict=True):
        assert record.offset == span.offset_delta
        assert record.timestamp == header.base_timestamp + span.timestamp_delta
        assert record.key == (None if span.key_start < 0 else body[span.key_start : span.key_end])
        assert (record.value is not None) == span.has_value


def test_log_append_time_is_the_timestamp_of_every_record() -> None:
    data = build_batch([RecordData(None, b"a", 1), RecordData(None, b"b", 5)], log_append_time=True)
    assert [record.timestamp for record in iter_records(data)] == [5, 5]


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, -65, 300, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)])
def test_varints_read_back(value: int) -> None:
    encoded = write_varint(value)
    assert read_varint(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize(("encoded", "value"), [(b"\x00", 0), (b"\x01", -1), (b"\x02", 1), (b"\xac\x02", 150), (b"\x7f", -64)])
def test_varints_are_zig_zag(encoded: bytes, value: int) -> None:
    assert write_varint(value) == encoded
    assert read_varint(encoded, 0)[0] == value


def test_a_varint_has_at_most_ten_bytes() -> None:
    with pytest.raises(CorruptBatch, match="more than 10"):
        read_varint(b"\xff" * 11, 0)


def test_timestamps_wrap_as_they_do_in_the_jvm() -> None:
    body = encode_record(RecordData(b"k", b"v"), 0, 10)
    data = raw_batch(body, 1, base_timestamp=(1 << 63) - 1)
    assert [record.timestamp for record in iter_records(data)] == [-(1 << 63) + 9]


GOOD = encode_record(RecordData(b"key", b"value", 0, (("h", b"x"),)), 0, 0)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        pytest.param(GOOD, 2, id="fewer records than claimed"),
        pytest.param(GOOD + GOOD, 1, id="more records than claimed"),
        pytest.param(GOOD[:-1], 1, id="a record cut short"),
        pytest.param(b"", 1, id="no records where one is claimed"),
        pytest.param(GOOD, -1, id="a negative count"),
        pytest.param(GOOD, 1 << 30, id="a count that no body could hold"),
        pytest.param(b"\x00" * 8, 1, id="a record of no bytes"),
        pytest.param(b"\x01" + b"\x00" * 8, 1, id="a record of negative length"),
        pytest.param(b"\x0e\x00\x00\x00\x03\x01\x00\x00", 1, id="a key length below null"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x03\x00\x00", 1, id="a value length below null"),
        pytest.param(b"\x0e\x00\x00\x00\x40\x01\x00\x00", 1, id="a key longer than its record"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x40\x00\x00", 1, id="a value longer than its record"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x01\x01\x00", 1, id="a negative number of headers"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x01\x7e\x00", 1, id="more headers than fit"),
        pytest.param(b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, id="a header without a key"),
        pytest.param(b"\x10\x00\x00\x00\x01\x01\x00\x00\x00", 1, id="bytes between headers and the record's end"),
    ],
)
def test_a_body_that_is_not_what_it_claims_is_corrupt(body: bytes, count: int) -> None:
    data = raw_batch(body, count)
    with pytest.raises(CorruptBatch):
        list(iter_records(data))
    header = read_header(data)
    with pytest.raises(CorruptBatch):
        validate_records(records_body(data, header), header, oldest_ms=0, newest_ms=FOREVER)


def test_a_body_larger_than_allowed_is_not_decompressed() -> None:
    data = build_batch([RecordData(None, bytes(100_000))], codec=4)
    with pytest.raises(DecompressionBomb):
        list(iter_records(data, max_decompressed=99_999))


def scan(records: list[RecordData], oldest_ms: int = 0, newest_ms: int = FOREVER) -> object:
    data = build_batch(records)
    header = read_header(data)
    return validate_records(records_body(data, header), header, oldest_ms=oldest_ms, newest_ms=newest_ms)


def test_a_walk_names_records_without_keys_and_out_of_bounds() -> None:
    records = [RecordData(b"k", b"", 100), RecordData(None, None, 50), RecordData(b"", b"", -1), RecordData(b"k", b"", 201)]
    assert scan(records, 60, 200) == (True, 201, (1,), ((1, 50), (3, 201)))
    assert scan(records, 50, 201) == (True, 201, (1,), ())


def test_a_walk_sees_offsets_that_are_not_consecutive() -> None:
    body = encode_record(RecordData(b"k", b"v"), 0, 0) + encode_record(RecordData(b"k", b"v"), 2, 0)
    header = read_header(raw_batch(body, 2))
    assert not validate_records(body, header, oldest_ms=0, newest_ms=FOREVER).consecutive
