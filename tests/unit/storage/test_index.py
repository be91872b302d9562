"""Index files: Kafka's bytes, zero tails, and what is found in them."""

from pathlib import Path

import pytest

from tidelog.storage.index import (
    AbortedTransaction,
    CorruptIndex,
    Indexer,
    OffsetIndex,
    TimeIndex,
    parse_transaction_index,
)

GOLDEN = Path("tests/golden/log/tp0")
LOG_SIZE = (GOLDEN / "00000000000000000000.log").stat().st_size


def test_an_offset_index_of_kafka_reads_and_writes_back_byte_for_byte() -> None:
    raw = (GOLDEN / "00000000000000000000.index").read_bytes()
    index = OffsetIndex.parse(0, raw, LOG_SIZE)
    assert len(index) == len(raw) // 8
    assert (index.relative_offsets[0], index.positions[0]) == (0x16, 0x16D8)
    assert index.encode() == raw


def test_a_time_index_of_kafka_reads_and_writes_back_byte_for_byte() -> None:
    raw = (GOLDEN / "00000000000000000000.timeindex").read_bytes()
    index = TimeIndex.parse(0, raw)
    assert (index.timestamps[0], index.relative_offsets[0]) == (0x01A1FD8552BB, 13)
    assert index.encode() == raw
    assert index.last() == (0x01A1FD855C2A, 0x6DE)


def test_a_tail_of_zeroes_is_no_part_of_an_index() -> None:
    offsets, times = OffsetIndex(100), TimeIndex(100)
    offsets.append(356, 5000)
    times.maybe_append(1000, 356)
    assert len(OffsetIndex.parse(100, offsets.encode() + bytes(800), 6000)) == 1
    assert len(TimeIndex.parse(100, times.encode() + bytes(1200))) == 1


def test_an_index_with_a_zero_tail_is_to_be_written_again() -> None:
    index = OffsetIndex(0)
    index.append(5, 5000)
    assert OffsetIndex.parse(0, index.encode(), 6000).is_written()
    assert not OffsetIndex.parse(0, index.encode() + bytes(8), 6000).is_written()


def test_timestamps_survive_in_all_their_64_bits() -> None:
    index = TimeIndex(0)
    for number, timestamp in enumerate([1, 0xFFFFFFFF, 0x1_0000_0000, 0x7FFF_FFFF_FFFF_FFFE]):
        index.maybe_append(timestamp, number)
    assert list(TimeIndex.parse(0, index.encode()).timestamps) == list(index.timestamps)


@pytest.mark.parametrize(
    "raw",
    [b"\0\0\0\1\0\0\0\1\1", b"\0\0\0\1\0\1\0\0", b"\xff\xff\xff\xff\0\0\0\1", b"\0\0\0\5\0\0\0\2\0\0\0\1\0\0\0\1"],
    ids=["not whole", "past the log", "before the base", "going back"],
)
def test_an_offset_index_that_does_not_fit_its_log_is_corrupt(raw: bytes) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex.parse(0, raw, 100)


def test_a_time_index_that_goes_back_is_corrupt() -> None:
    index = TimeIndex(0)
    index.maybe_append(1000, 3)
    index.maybe_append(2000, 9)
    raw = index.encode()
    with pytest.raises(CorruptIndex):
        TimeIndex.parse(0, raw[12:] + raw[:12])


def test_a_search_starts_at_a_batch_that_ends_at_or_before_the_offset() -> None:
    index = OffsetIndex(1000)
    index.append(1009, 500)
    index.append(1019, 900)
    found = [index.entry_at_or_before(offset) for offset in (1000, 1008, 1009, 1018, 1019, 5000)]
    assert found == [(0, -1), (0, -1), (500, 1009), (500, 1009), (900, 1019), (900, 1019)]


def test_the_last_boundary_is_above_the_start_and_within_the_limit() -> None:
    index = OffsetIndex(0)
    index.append(9, 500)
    index.append(19, 900)
    assert index.last_boundary(0, 899) == 500
    assert index.last_boundary(0, 900) == 900
    assert index.last_boundary(900, 5000) == -1
    assert index.last_boundary(0, 499) == -1


def test_the_time_index_only_grows() -> None:
    index = TimeIndex(0)
    index.maybe_append(1000, 3)
    index.maybe_append(1000, 5)
    index.maybe_append(900, 7)
    assert list(index.timestamps) == [1000]
    assert (index.offset_before(999), index.offset_before(1000), index.offset_before(5000)) == (0, 3, 3)


def test_truncation_forgets_entries_and_says_that_the_file_is_behind() -> None:
    offsets, times = OffsetIndex(0), TimeIndex(0)
    for number in range(1, 5):
        offsets.append(number * 10, number * 1000)
        times.maybe_append(number * 7, number * 10)
    offsets.mark_written()
    times.mark_written()
    offsets.truncate_to_position(3000)
    times.truncate_to_offset(30)
    assert (list(offsets.positions), list(times.timestamps)) == ([1000, 2000], [7, 14])
    assert not offsets.is_written()
    assert not times.is_written()
    assert offsets.encode(offsets.written) == b""


def test_entries_come_before_the_batch_that_follows_more_than_an_interval() -> None:
    indexer = Indexer(0, 100)
    for number in range(5):
        indexer.add(number * 51, 51, number, 1000 - number)
    indexer.finish()
    # 102 bytes lie before the third batch, 51 and 102 before the next two.
    assert (list(indexer.offsets.relative_offsets), list(indexer.offsets.positions)) == ([2, 4], [102, 204])
    assert (list(indexer.times.timestamps), list(indexer.times.relative_offsets)) == ([1000], [0])


def test_aborted_transactions_take_34_bytes_each() -> None:
    entry = AbortedTransaction(7, 10, 20, 15)
    assert entry.encode() == bytes.fromhex(
        "0000" + "0000000000000007" + "000000000000000a" + "0000000000000014" + "000000000000000f"
    )
    assert parse_transaction_index(0, entry.encode() * 1) == [entry]


@pytest.mark.parametrize(
    "raw",
    [
        AbortedTransaction(7, 10, 20, 15).encode()[:-1],
        b"\0\1" + AbortedTransaction(7, 10, 20, 15).encode()[2:],
        AbortedTransaction(7, 10, 20, 15).encode() * 2,
    ],
    ids=["not whole", "another version", "not ascending"],
)
def test_a_transaction_index_that_does_not_read_is_corrupt(raw: bytes) -> None:
    with pytest.raises(CorruptIndex):
        parse_transaction_index(0, raw)
