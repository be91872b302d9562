"""Headers of record batches: read, refused, patched in place. Golden bytes: tests/golden/batches/README.md."""

from pathlib import Path

import pytest

from tidelog.records.batch import (
    FLAGS_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    SPAN,
    BatchHeader,
    CorruptBatch,
    TruncatedBatch,
    assign_offsets,
    compute_crc,
    crc_is_valid,
    iter_headers,
    read_header,
    read_max_timestamp,
    read_producer,
    set_max_timestamp,
    write_producer,
)
from tidelog.records.builder import RecordData, build_batch

GOLDEN = Path(__file__).parents[2] / "golden" / "batches"


def batch(**settings: object) -> bytearray:
    return build_batch([RecordData(b"k", b"v", 1000), RecordData(b"l", b"w", 1007)], **settings)  # type: ignore[arg-type]


def test_every_field_of_a_header_that_kafka_wrote() -> None:
    assert read_header((GOLDEN / "java_lz4.batch").read_bytes()) == BatchHeader(
        position=0,
        base_offset=0,
        size=1214,
        leader_epoch=-1,
        magic=2,
        crc=read_header((GOLDEN / "java_lz4.batch").read_bytes()).crc,
        attributes=3,
        last_offset_delta=39,
        base_timestamp=1795254735538,
        max_timestamp=1795254735655,
        producer_id=4711,
        producer_epoch=3,
        base_sequence=17,
        records_count=40,
    )


@pytest.mark.parametrize(
    ("name", "offsets"),
    [
        ("transaction_state.log", [0, 1, 2, 3, 4]),
        ("consumer_offsets.log", [0, 1, 2, 4, 5, 10, 12]),
        ("cluster_metadata.log", [0, 3, 12, 13, 14]),
        ("bootstrap.checkpoint", [0, 1, 7]),
    ],
)
def test_files_of_a_kafka_node_are_whole_batches_with_right_checksums(name: str, offsets: list[int]) -> None:
    data = (GOLDEN / name).read_bytes()
    headers = list(iter_headers(data))
    assert [header.base_offset for header in headers][: len(offsets)] == offsets
    assert all(crc_is_valid(data, header) for header in headers)
    assert headers[-1].end_position == len(data)


def test_bits_of_the_attributes() -> None:
    header = read_header(batch(codec=4, log_append_time=True, transactional=True, control=True, delete_horizon_ms=900))
    assert header.codec == 4
    assert header.log_append_time and header.is_transactional and header.is_control and header.has_delete_horizon
    assert header.delete_horizon_ms == 900
    plain = read_header(batch())
    assert plain.codec == 0
    assert not (plain.log_append_time or plain.is_transactional or plain.is_control or plain.has_delete_horizon)
    assert plain.delete_horizon_ms is None


def test_sequences_wrap_after_the_largest_int() -> None:
    assert read_header(batch(producer_id=1, producer_epoch=0, base_sequence=5)).last_sequence == 6
    assert read_header(batch(producer_id=1, producer_epoch=0, base_sequence=0x7FFFFFFF)).last_sequence == 0
    assert read_header(batch()).last_sequence == -1


def test_a_batch_cut_short_is_truncated_at_every_length() -> None:
    data = bytes(batch())
    for length in range(len(data)):
        with pytest.raises(TruncatedBatch):
            read_header(data[:length])


@pytest.mark.parametrize(
    ("position", "value", "said"),
    [
        (16, b"\1", "magic 1"),
        (16, b"\3", "magic 3"),
        (8, b"\0\0\0\x30", "batch of 60 bytes"),
        (8, b"\x80\0\0\0", "the header alone takes 61"),
    ],
)
def test_bytes_that_are_no_batch_are_refused_by_rule(position: int, value: bytes, said: str) -> None:
    data = batch()
    data[position : position + len(value)] = value
    with pytest.raises(CorruptBatch, match=said) as found:
        read_header(data)
    assert not isinstance(found.value, TruncatedBatch)


def test_headers_are_iterated_up_to_a_torn_tail() -> None:
    data = bytes(batch() + batch(codec=1) + batch()[:70])
    found = []
    with pytest.raises(TruncatedBatch):
        for header in iter_headers(data):
            found.append(header.codec)
    assert found == [0, 1]


def test_assigning_offsets_keeps_the_checksum_and_the_header_follows() -> None:
    data = memoryview(bytearray(b"before") + batch())
    header = read_header(data, 6)
    assign_offsets(data, header, 1 << 40, 12)
    assert read_header(data, 6) == header
    assert (header.base_offset, header.last_offset, header.next_offset, header.leader_epoch) == (
        1 << 40,
        (1 << 40) + 1,
        (1 << 40) + 2,
        12,
    )
    assert crc_is_valid(data, header)


def test_a_new_timestamp_gets_a_new_checksum() -> None:
    data = batch()
    header = read_header(data)
    before = header.crc
    set_max_timestamp(data, header, True, 5000)
    assert header.crc != before
    assert read_header(data) == header
    assert header.log_append_time and header.max_timestamp == 5000
    assert crc_is_valid(data, header)


def test_an_unchanged_timestamp_changes_nothing() -> None:
    data = batch()
    before = bytes(data)
    set_max_timestamp(data, read_header(data), False, 1007)
    assert data == before


def test_the_checksum_covers_every_byte_from_the_attributes_on() -> None:
    data = batch()
    header = read_header(data)
    for position in range(21, len(data)):
        data[position] ^= 1
        assert compute_crc(data, header) != header.crc
        data[position] ^= 1
    assert crc_is_valid(data, header)
    assert len(data) > HEADER_SIZE


def test_the_short_readers_agree_with_the_whole_header() -> None:
    data = batch()
    write_producer(data, 7, 3, 41)
    header = read_header(data)
    assert header.is_transactional and data[FLAGS_POSITION] == header.attributes & 0xFF
    assert crc_is_valid(data, header)
    assert read_producer(data) == (7, 3, 41) == (header.producer_id, header.producer_epoch, header.base_sequence)
    assert read_max_timestamp(data) == header.max_timestamp
    span = SPAN.unpack_from(data)
    assert span == (header.base_offset, header.size - LOG_OVERHEAD, header.last_offset_delta, header.max_timestamp)


def test_an_incomplete_header_names_no_producer() -> None:
    assert read_producer(batch()[: HEADER_SIZE - 1]) == (-1, -1, -1)
