"""What may be appended: one case per rule, and the verdicts of Apache Kafka's own LogValidator (tests/golden/batches)."""

import random
from dataclasses import replace
from pathlib import Path
from struct import pack_into

import pytest

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import compute_crc, crc_is_valid, read_header, set_max_timestamp
from tidelog.records.builder import RecordData, assemble, build_batch, encode_record
from tidelog.records.compression import Codec, compress
from tidelog.records.record import iter_records
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.validation import (
    MAX_RECORD_ERRORS,
    WALK_BYTES,
    WALK_COMPRESSED_BYTES,
    WALK_RECORDS,
    Rules,
    Verdict,
    place,
    validate,
    validate_replicated,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "batches" / "validator.txt"
NOW = 1_000_000
HOUR = 3_600_000
PLAIN = LogConfig()
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
STAMPED = LogConfig(message_timestamp_type="LogAppendTime")


def batch(*timestamps: int, **settings: object) -> bytearray:
    records = [RecordData(b"key%d" % i, b"value", timestamp) for i, timestamp in enumerate(timestamps or (1000, 1001))]
    return build_batch(records, **settings)  # type: ignore[arg-type]


def patched(position: int, value: tuple[str, int], **settings: object) -> bytearray:
    """A batch with one field (struct form, value) overwritten, and a right checksum."""
    data = batch(**settings)
    pack_into(value[0], data, position, value[1])
    header = read_header(data)
    pack_into(">I", data, 17, compute_crc(data, header))
    return data


def raw(body: bytes, count: int, codec: int = 0) -> bytearray:
    """A batch around a body that no producer makes."""
    return assemble(
        body,
        count,
        base_offset=0,
        last_offset_delta=count - 1,
        leader_epoch=-1,
        attributes=codec,
        base_timestamp=5,
        max_timestamp=5,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )


def judge(data: bytearray, config: LogConfig = PLAIN, *, strict: bool = False, **settings: object) -> Verdict:
    """The final verdict, deep validation included."""
    given = bytes(data)
    verdict = validate(data, Rules.of(config, strict=strict), now_ms=NOW, **settings)  # type: ignore[arg-type]
    if verdict.deep is not None:
        assert verdict.error == ErrorCode.NONE
        verdict = verdict.deep.run()
    assert data == given, "validation wrote to the buffer it was given"
    return verdict


def is_long(records: int, value_bytes: int, codec: Codec = Codec.NONE) -> bool:
    value = bytes(value_bytes) if codec is Codec.NONE else random.Random(1).randbytes(value_bytes)
    data = build_batch([RecordData(b"key", value, 1000) for _ in range(records)], codec=codec)
    deep = validate(data, Rules.of(PLAIN, strict=True), now_ms=NOW).deep
    assert deep is not None
    return deep.is_long


def test_a_walk_is_long_with_many_records_or_bytes_and_sooner_if_they_are_compressed() -> None:
    assert [is_long(WALK_RECORDS + more, 1) for more in (0, 1)] == [False, True]
    assert [is_long(1, size) for size in (WALK_BYTES - 200, WALK_BYTES)] == [False, True]
    assert [is_long(1, size, Codec.GZIP) for size in (WALK_COMPRESSED_BYTES - 400, WALK_COMPRESSED_BYTES)] == [False, True]


def test_an_ordinary_batch_needs_only_its_header() -> None:
    for codec in Codec:
        data = batch(codec=codec)
        verdict = validate(data, Rules.of(PLAIN), now_ms=NOW)
        assert (verdict.error, verdict.deep, verdict.record_errors, verdict.message) == (ErrorCode.NONE, None, (), None)
        assert verdict.records is data
        assert verdict.header == read_header(data)


WALKED = {
    "a compacted topic has keys to check": (COMPACTED, {}),
    "a bound on old timestamps": (replace(PLAIN, message_timestamp_before_max_ms=5 * HOUR), {}),
    "a codec that the topic stores differently": (replace(PLAIN, compression_type="zstd"), {}),
    "compressed records that the topic stores plain": (replace(PLAIN, compression_type="uncompressed"), {"codec": 4}),
    "a timestamp type that only brokers set": (PLAIN, {"log_append_time": True}),
}


@pytest.mark.parametrize("rule", WALKED)
def test_records_are_walked_for(rule: str) -> None:
    config, settings = WALKED[rule]
    assert validate(batch(**settings), Rules.of(config), now_ms=NOW).deep is not None
    assert judge(batch(**settings), config).error == ErrorCode.NONE


def test_records_are_walked_for_a_timestamp_ahead_of_the_clock_by_more_than_allowed() -> None:
    assert validate(batch(NOW + HOUR), Rules.of(PLAIN), now_ms=NOW).deep is None
    assert validate(batch(NOW + HOUR + 1), Rules.of(PLAIN), now_ms=NOW).deep is not None


def test_records_are_always_walked_in_strict_mode() -> None:
    assert validate(batch(), Rules.of(PLAIN, strict=True), now_ms=NOW).deep is not None


REFUSED = {
    "no bytes at all": (bytearray(), ErrorCode.INVALID_RECORD),
    "a batch cut short": (batch()[:-1], ErrorCode.INVALID_RECORD),
    "two batches": (batch() + batch(), ErrorCode.INVALID_RECORD),
    "bytes after the batch": (batch() + b"x", ErrorCode.INVALID_RECORD),
    "message format 0": (bytearray(batch()[:16] + b"\0" + batch()[17:]), ErrorCode.INVALID_RECORD),
    "message format 1": (bytearray(batch()[:16] + b"\1" + batch()[17:]), ErrorCode.INVALID_RECORD),
    "a message format that never was": (bytearray(batch()[:16] + b"\7" + batch()[17:]), ErrorCode.CORRUPT_MESSAGE),
    "a length shorter than a header": (bytearray(batch()[:8] + b"\0\0\0\x10" + batch()[12:]), ErrorCode.CORRUPT_MESSAGE),
    "a checksum that is not that of the bytes": (bytearray(batch()[:-1] + b"\x7f"), ErrorCode.CORRUPT_MESSAGE),
    "a base offset other than 0": (batch(base_offset=3), ErrorCode.INVALID_RECORD),
    "no records": (patched(57, (">i", 0)), ErrorCode.INVALID_RECORD),
    "a negative number of records": (patched(57, (">i", -2)), ErrorCode.INVALID_RECORD),
    "more records than offsets": (patched(57, (">i", 3)), ErrorCode.INVALID_RECORD),
    "more offsets than records": (patched(23, (">i", 2)), ErrorCode.INVALID_RECORD),
    "a negative last offset": (patched(23, (">i", -1)), ErrorCode.INVALID_RECORD),
    "more records than its bytes can hold": (raw(b"\0" * 13, 2), ErrorCode.INVALID_RECORD),
    "a control batch": (batch(control=True), ErrorCode.INVALID_RECORD),
    "a producer id without a sequence": (batch(producer_id=4, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "a transaction without a producer id": (batch(transactional=True), ErrorCode.INVALID_RECORD),
    "codec 5": (patched(21, (">h", 5)), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7": (patched(21, (">h", 7)), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_a_client_may_not_send(rule: str) -> None:
    data, error = REFUSED[rule]
    verdict = judge(data)
    assert verdict.error == error
    assert verdict.message
    assert verdict.header is None


def test_zstd_is_refused_below_produce_7_and_taken_from_there() -> None:
    data = batch(codec=4)
    assert judge(data, zstd_allowed=False).error == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert judge(data, zstd_allowed=True).error == ErrorCode.NONE
    assert judge(batch(codec=3), zstd_allowed=False).error == ErrorCode.NONE


def test_sizes_are_bounded_by_the_topic_and_by_the_segment() -> None:
    data = batch()
    assert judge(data, replace(PLAIN, max_message_bytes=len(data))).error == ErrorCode.NONE
    assert judge(data, replace(PLAIN, max_message_bytes=len(data) - 1)).error == ErrorCode.MESSAGE_TOO_LARGE
    assert judge(data, replace(PLAIN, segment_bytes=len(data))).error == ErrorCode.NONE
    assert judge(data, replace(PLAIN, segment_bytes=len(data) - 1)).error == ErrorCode.RECORD_LIST_TOO_LARGE


def test_sizes_are_those_after_recompression() -> None:
    data = build_batch([RecordData(b"k", bytes(5000), 1000)], codec=4)
    stored_plain = replace(PLAIN, compression_type="uncompressed", max_message_bytes=5000)
    assert judge(data, stored_plain).error == ErrorCode.MESSAGE_TOO_LARGE
    assert judge(data, replace(stored_plain, max_message_bytes=6000, segment_bytes=5000)).error == ErrorCode.RECORD_LIST_TOO_LARGE
    assert judge(data, replace(stored_plain, max_message_bytes=6000)).error == ErrorCode.NONE


def test_records_without_keys_are_named_on_a_compacted_topic() -> None:
    records = [RecordData(None, b"a", 1000), RecordData(b"", b"b", 1000), RecordData(None, b"c", 1000)]
    for codec in Codec:
        verdict = judge(build_batch(records, codec=codec), COMPACTED)
        assert verdict.error == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in verdict.record_errors] == [0, 2]
        assert judge(build_batch(records, codec=codec), PLAIN).error == ErrorCode.NONE


def test_no_more_records_are_named_than_an_answer_may_hold() -> None:
    verdict = judge(build_batch([RecordData(None, b"a", 1000)] * 500), COMPACTED)
    assert len(verdict.record_errors) == MAX_RECORD_ERRORS


def test_timestamps_out_of_bounds_are_named() -> None:
    config = replace(PLAIN, message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=10)
    data = batch(NOW, NOW - 1000, NOW - 1001, NOW + 10, NOW + 11, -1)
    verdict = judge(data, config)
    assert verdict.error == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in verdict.record_errors] == [2, 4]
    assert judge(data, replace(config, message_timestamp_type="LogAppendTime")).error == ErrorCode.NONE


def test_a_record_from_the_future_is_refused_with_the_default_bounds() -> None:
    verdict = judge(batch(NOW, NOW + HOUR + 1))
    assert verdict.error == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in verdict.record_errors] == [1]


def test_a_max_timestamp_that_no_record_has_is_put_right() -> None:
    data = batch(1000, 2000)
    set_max_timestamp(data, read_header(data), False, NOW + 2 * HOUR)
    rules = Rules.of(PLAIN)
    verdict = judge(data)
    assert (verdict.error, verdict.max_timestamp) == (ErrorCode.NONE, 2000)
    assert place(verdict, rules, 5, 1, NOW).max_timestamp == 2000
    assert crc_is_valid(data, read_header(data))


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_with_the_topics_codec(source: Codec, target: str) -> None:
    data = batch(codec=source, producer_id=3, producer_epoch=1, base_sequence=9, transactional=True)
    verdict = judge(data, replace(PLAIN, compression_type=target))
    header = read_header(verdict.records)
    assert Codec(header.codec).name == {"uncompressed": "NONE"}.get(target, target.upper())
    assert list(iter_records(verdict.records)) == list(iter_records(data))
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (3, 1, 9, True)
    assert crc_is_valid(verdict.records, header)
    assert verdict.header == header


def test_the_topics_level_is_used() -> None:
    data = build_batch([RecordData(b"k", b"%d" % (i * i), 1000) for i in range(2000)])
    sizes = [len(judge(data, replace(PLAIN, compression_type="gzip", compression_gzip_level=level)).records) for level in (1, 9)]
    assert sizes[0] > sizes[1]


def test_wrong_offsets_inside_a_batch_are_put_right() -> None:
    body = b"".join(encode_record(RecordData(b"k", b"%d" % delta), delta, 0) for delta in (4, 2, 9))
    for codec in Codec:
        verdict = judge(raw(compress(codec, body), 3, codec), strict=True)
        assert [(record.offset, record.value) for record in iter_records(verdict.records)] == [(0, b"4"), (1, b"2"), (2, b"9")]
        assert read_header(verdict.records).codec == codec


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_strict_mode_refuses_garbage_where_a_codecs_data_should_be(codec: int) -> None:
    data = patched(21, (">h", codec))
    assert judge(data, strict=True).error == ErrorCode.INVALID_RECORD


def test_a_bomb_is_refused_where_records_are_walked() -> None:
    data = build_batch([RecordData(b"k", bytes(40 << 20), 1000)], codec=4)
    assert len(data) < 20_000
    verdict = judge(data, COMPACTED)
    assert verdict.error == ErrorCode.INVALID_RECORD
    assert verdict.message is not None and "decompresses" in verdict.message


@pytest.mark.parametrize("codec", [0, 4])
def test_log_append_time_is_written_into_the_header(codec: int) -> None:
    data = batch(1000, 2000, codec=codec)
    rules = Rules.of(STAMPED)
    verdict = validate(data, rules, now_ms=NOW)
    assert verdict.deep is None
    header = place(verdict, rules, 70, 4, NOW + 5)
    assert header == read_header(data)
    assert (header.base_offset, header.leader_epoch, header.max_timestamp) == (70, 4, NOW + 5)
    assert crc_is_valid(data, header)
    assert {record.timestamp for record in iter_records(data)} == {NOW + 5}


def test_a_producer_may_not_claim_log_append_time_on_a_topic_that_has_it() -> None:
    verdict = judge(batch(log_append_time=True), STAMPED)
    assert verdict.error == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in verdict.record_errors] == [0, 1]


def test_log_append_time_ignores_the_producers_clock() -> None:
    assert judge(batch(NOW + 10 * HOUR), STAMPED).error == ErrorCode.NONE


def test_coordinators_and_raft_write_control_batches_and_their_own_offsets() -> None:
    data = batch(control=True, transactional=True, producer_id=1, producer_epoch=0, base_offset=9)
    for origin in (Origin.COORDINATOR, Origin.RAFT):
        for config in (PLAIN, COMPACTED):
            assert judge(data, config, origin=origin).error == ErrorCode.NONE


def test_coordinators_are_held_to_max_message_bytes_and_raft_is_not() -> None:
    small = replace(PLAIN, max_message_bytes=70)
    assert judge(batch(), small, origin=Origin.COORDINATOR).error == ErrorCode.MESSAGE_TOO_LARGE
    assert judge(batch(), small, origin=Origin.RAFT).error == ErrorCode.NONE


def test_replicated_batches_keep_their_offsets_and_a_torn_one_waits() -> None:
    data = batch(base_offset=10) + batch(base_offset=12, codec=4) + batch(base_offset=20)[:80]
    verdict = validate_replicated(data, 10)
    assert verdict.error == ErrorCode.NONE
    assert [(header.position, header.base_offset) for header in verdict.headers] == [(0, 10), (len(batch(base_offset=10)), 12)]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (batch(base_offset=9), ErrorCode.INVALID_RECORD),
        (batch(base_offset=10) + batch(base_offset=11), ErrorCode.INVALID_RECORD),
        (patched(23, (">i", -1), base_offset=10), ErrorCode.INVALID_RECORD),
        (bytearray(batch(base_offset=10)[:-1] + b"\x7f"), ErrorCode.CORRUPT_MESSAGE),
        (batch(base_offset=10) + bytes(100), ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["offsets already there", "offsets that overlap", "a negative span", "a wrong checksum", "garbage"],
)
def test_a_leader_may_not_send(data: bytearray, error: ErrorCode) -> None:
    verdict = validate_replicated(data, 10)
    assert (verdict.error, verdict.headers) == (error, [])


# Where we differ from Kafka, on purpose. It trips over its own iterator for compressed batches whose inner offsets have gaps
# (they are renumbered here); it leaves such offsets alone in plain batches; it takes transactions that have no producer id. Its
# gzip and zstd write other bytes for the same records.
DIFFERENT = {"gaps_plain", "gaps_zstd", "gaps_snappy", "txn_nopid", "z_garbage", "sn_garbage"}
SAME_RECORDS = {"zstd_from_none", "gzip_from_none", "zstd_from_snappy"}
CODES = {"InvalidTimestampException": ErrorCode.INVALID_TIMESTAMP, "InvalidRecordException": ErrorCode.INVALID_RECORD}
# What header-only validation lets pass, as the module says.
STRICT_ONLY = {"wrongmax", "count3_delta2", "count1_delta0", "z_count1_delta0", "z_count3_delta2"}
CASES = [tuple(line.rstrip("\n").split(" | ")) for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "header"])
@pytest.mark.parametrize("case", [case for case in CASES if case[0] not in DIFFERENT], ids=lambda case: case[0])
def test_verdicts_are_those_of_kafkas_validator(case: tuple[str, ...], strict: bool) -> None:
    name, data, codec, compact, stamps, before, after, now, answer = case
    if name in STRICT_ONLY and not strict:
        assert validate(bytearray.fromhex(data), Rules.of(PLAIN), now_ms=NOW).error == ErrorCode.NONE
        return
    config = LogConfig(
        cleanup_policy=frozenset({"compact" if compact == "1" else "delete"}),
        compression_type="producer" if codec == "-1" else Codec(int(codec)).name.lower(),
        message_timestamp_type="LogAppendTime" if stamps == "L" else "CreateTime",
        message_timestamp_before_max_ms=int(before),
        message_timestamp_after_max_ms=int(after),
    )
    rules = Rules.of(config, strict=strict)
    verdict = validate(bytearray.fromhex(data), rules, now_ms=int(now))
    if verdict.deep is not None:
        verdict = verdict.deep.run()
    outcome, _, detail = answer.partition(" ")
    if outcome == "OK":
        place(verdict, rules, 1000, 7, int(now))
        if name in SAME_RECORDS:
            assert list(iter_records(verdict.records)) == list(iter_records(bytes.fromhex(detail)))
        else:
            assert bytes(verdict.records).hex() == detail
    else:
        assert verdict.error == CODES[outcome]
        assert ",".join(str(error.batch_index) for error in verdict.record_errors) == detail
