"""Batches of any content: what is built is read, what is damaged is refused as damaged, what compaction leaves is the latest."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import CorruptBatch, crc_is_valid, iter_headers, read_header
from tidelog.records.builder import RecordData, build_batch, rebuild_batch, renumber_records
from tidelog.records.compression import Codec, compress, decompress
from tidelog.records.control import (
    parse_end_txn_marker,
    parse_kraft_version,
    parse_leader_change,
    parse_snapshot_header,
    parse_voters,
)
from tidelog.records.record import Record, iter_records, iter_spans, records_body, validate_records
from tidelog.storage.cleaner_filter import BatchFilter, OffsetMap, TransactionFilter
from tidelog.storage.log_config import LogConfig
from tidelog.storage.validation import Rules, place, validate

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)
RECORD = st.builds(RecordData, st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=200), LONG, HEADERS)
RECORDS = st.lists(RECORD, min_size=1, max_size=12)
CODECS = st.sampled_from(list(Codec))
LIMIT = 1 << 20


@given(RECORDS, CODECS, st.integers(0, 1 << 62))
def test_what_is_built_is_read(records: list[RecordData], codec: Codec, base_offset: int) -> None:
    data = build_batch(records, codec=codec, base_offset=base_offset)
    header = read_header(data)
    assert crc_is_valid(data, header)
    assert list(iter_records(data)) == [
        Record(base_offset + i, r.timestamp, r.key, r.value, r.headers) for i, r in enumerate(records)
    ]
    body = records_body(data, header)
    spans = list(iter_spans(body, len(records)))
    assert [None if s.key_start < 0 else body[s.key_start : s.key_end] for s in spans] == [r.key for r in records]
    scan = validate_records(body, header, oldest_ms=-(1 << 63), newest_ms=1 << 63)
    assert scan.consecutive and scan.max_timestamp == max(-1, header.max_timestamp)
    assert scan.keyless == tuple(i for i, r in enumerate(records) if r.key is None)
    assert renumber_records(body, len(records)) == body


@given(RECORDS, CODECS, st.data())
def test_compaction_of_one_batch_keeps_each_record_as_it_is(records: list[RecordData], codec: Codec, data: st.DataObject) -> None:
    batch = build_batch(records, codec=codec, base_offset=77)
    header = read_header(batch)
    body = records_body(batch, header)
    kept = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, unique=True).map(sorted))
    horizon = data.draw(st.none() | LONG)
    rebuilt = rebuild_batch(header, body, [list(iter_spans(body, len(records)))[i] for i in kept], delete_horizon_ms=horizon)
    assert list(iter_records(rebuilt)) == [list(iter_records(batch))[i] for i in kept]
    after = read_header(rebuilt)
    assert crc_is_valid(rebuilt, after)
    assert (after.base_offset, after.last_offset, after.delete_horizon_ms) == (header.base_offset, header.last_offset, horizon)


@given(RECORDS, CODECS, st.data())
def test_damage_is_refused_as_damage(records: list[RecordData], codec: Codec, data: st.DataObject) -> None:
    batch = build_batch(records, codec=codec, producer_id=5, producer_epoch=1, base_sequence=0)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(batch)))
    for damaged in (batch, batch[:cut]):
        try:
            for header in iter_headers(damaged):
                crc_is_valid(damaged, header)
                list(iter_records(damaged, header, max_decompressed=LIMIT))
                body = records_body(damaged, header, LIMIT)
                validate_records(body, header, oldest_ms=0, newest_ms=1 << 62)
                rebuild_batch(header, body, list(iter_spans(body, header.records_count)))
        except CorruptBatch:
            pass
        except ValueError as error:
            assert "no records to keep" in str(error), error


RULES = [
    Rules.of(LogConfig()),
    Rules.of(LogConfig(), strict=True),
    Rules.of(LogConfig(cleanup_policy=frozenset({"compact"}), compression_type="lz4", max_message_bytes=5000)),
    Rules.of(LogConfig(message_timestamp_type="LogAppendTime", compression_type="uncompressed")),
]


@given(RECORDS, CODECS, st.sampled_from(RULES), st.data())
def test_validation_has_a_verdict_on_everything(
    records: list[RecordData], codec: Codec, rules: Rules, data: st.DataObject
) -> None:
    batch = build_batch(records, codec=codec)
    if data.draw(st.booleans()):
        for _ in range(data.draw(st.integers(1, 4))):
            batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()) and len(batch) >= 61:
        # With a right checksum every rule behind it is reached.
        try:
            header = read_header(batch)
            batch[17:21] = rechecksum(batch)
            assert crc_is_valid(batch, read_header(batch)) or header.size != len(batch)
        except CorruptBatch:
            pass
    verdict = validate(batch, rules, now_ms=1 << 40)
    if verdict.deep is not None:
        verdict = verdict.deep.run()
    if verdict.error == ErrorCode.NONE:
        header = place(verdict, rules, 1000, 7, 1 << 40)
        assert header == read_header(verdict.records)
        assert crc_is_valid(verdict.records, header)
        assert header.base_offset == 1000 and header.last_offset_delta + 1 == header.records_count
    else:
        assert verdict.message


def rechecksum(batch: bytearray) -> bytes:
    from tidelog.records.checksum import crc32c

    return crc32c(memoryview(batch)[21:]).to_bytes(4, "big")


@given(st.binary(max_size=300), st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]), st.integers(0, 400))
def test_decompression_gives_the_data_or_a_corrupt_batch(data: bytes, codec: Codec, limit: int) -> None:
    with contextlib.suppress(CorruptBatch):
        assert len(decompress(codec, data, limit)) <= limit
    packed = compress(codec, data)
    if limit >= len(data):
        assert decompress(codec, packed, limit) == data


@given(st.binary(max_size=60))
def test_control_values_are_read_or_refused(value: bytes) -> None:
    for parse in (parse_voters, parse_leader_change, parse_snapshot_header, parse_kraft_version):
        with contextlib.suppress(CorruptBatch):
            parse(value)
    with contextlib.suppress(CorruptBatch):
        parse_end_txn_marker(value[:4], value[4:])


KEYED = st.tuples(
    st.sampled_from([b"a", b"b", b"c", b"a-key-of-more-than-sixteen-bytes", None]), st.none() | st.binary(max_size=3)
)


@given(st.lists(st.tuples(st.lists(KEYED, min_size=1, max_size=4), CODECS), min_size=1, max_size=8), st.integers(0, 20))
@settings(max_examples=60)
def test_compaction_keeps_exactly_the_latest_of_each_key(
    content: list[tuple[list[tuple[bytes | None, bytes | None]], Codec]], clean: int
) -> None:
    log: list[bytearray] = []
    offset = 0
    for pairs, codec in content:
        log.append(build_batch([RecordData(k, v, 1000 + offset) for k, v in pairs], base_offset=offset, codec=codec))
        offset += len(pairs)
    offsets = OffsetMap(100)
    for batch in log:
        header = read_header(batch)
        if header.last_offset >= clean:
            assert offsets.add_batch(header, batch, clean)
    offsets.accounted_for(offset - 1)
    chosen = BatchFilter(offsets, TransactionFilter(), {}, upper_bound=-1, now_ms=5000, delete_retention_ms=100)
    left = [chosen.filter(read_header(batch), batch) for batch in log]
    found = [record for batch in left if batch is not None for record in iter_records(batch)]
    everything = [record for batch in log for record in iter_records(batch)]
    dirty = {record.key: record.offset for record in everything if record.offset >= clean}
    assert found == [r for r in everything if r.key is not None and r.offset >= dirty.get(r.key, -1)]
    assert chosen.records_kept == len(found)
