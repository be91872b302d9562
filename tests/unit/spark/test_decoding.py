"""Batches of a Fetch: which become rows, which do not, and which stop the query with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.compression import Codec
from tidelog.spark.columns import PlainColumns, Wanted
from tidelog.spark.decoding import BatchDecoder, UnreadableBatch

AT = TopicPartition("t", 0)
COMPACTED = Path(__file__).parents[2] / "golden" / "batches" / "compaction"
COMMIT, ABORT = b"\0\0\0\1", b"\0\0\0\0"


def batch(base: int, count: int, *, producer: int = -1, transactional: bool = False, codec: int = Codec.NONE) -> bytes:
    records = [RecordData(None, f"v{base + i}".encode(), 1000) for i in range(count)]
    return bytes(build_batch(records, base_offset=base, producer_id=producer, transactional=transactional, codec=codec))


def marker(base: int, producer: int, key: bytes) -> bytes:
    record = RecordData(key, b"\0\0\0\0\0\0", 1000)
    return bytes(build_batch([record], base_offset=base, producer_id=producer, transactional=True, control=True))


def decoder(start: int, end: int, **settings: int | bool) -> tuple[BatchDecoder, PlainColumns]:
    columns = PlainColumns(Wanted(offset=True, timestamp=False, key=False, value=True))
    found = BatchDecoder(
        AT,
        start,
        end,
        columns,
        check_crcs=bool(settings.get("check_crcs", True)),
        max_batch_bytes=int(settings.get("max_batch_bytes", 1 << 20)),
    )
    return found, columns


def offsets(columns: PlainColumns) -> list[int]:
    raw = bytes(columns.take().offset or b"")
    return [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)]


def read(data: bytes, start: int, end: int, aborted: tuple[tuple[int, int], ...] = (), **settings: int | bool) -> list[int]:
    found, columns = decoder(start, end, **settings)
    found.feed(data, found.headers(data), aborted)
    assert found.done
    return offsets(columns)


def test_a_range_may_begin_and_end_inside_batches() -> None:
    data = batch(0, 5) + batch(5, 5, codec=Codec.LZ4) + batch(10, 5)
    assert read(data, 3, 12) == list(range(3, 12))


def test_gaps_of_compaction_are_passed_over() -> None:
    assert read(batch(0, 2) + batch(90, 2), 0, 91) == [0, 1, 90]
    assert read(batch(200, 1), 0, 100) == []


def test_a_torn_last_batch_is_left_for_the_next_fetch() -> None:
    data = batch(0, 3) + batch(3, 3)
    found, columns = decoder(0, 6)
    found.feed(data[:-1], found.headers(data[:-1]), ())
    assert (found.position, found.done, offsets(columns)) == (3, False, [0, 1, 2])
    found.feed(batch(3, 3), found.headers(batch(3, 3)), ())
    assert (found.done, offsets(columns)) == (True, [3, 4, 5])


def test_what_comes_twice_counts_once() -> None:
    found, columns = decoder(0, 6)
    for data in (batch(0, 3), batch(0, 3) + batch(3, 3)):
        found.feed(data, found.headers(data), ())
    assert offsets(columns) == list(range(6))


def test_only_what_was_committed_becomes_rows() -> None:
    data = b"".join(
        (
            batch(0, 2, producer=7, transactional=True),
            batch(2, 2, producer=8, transactional=True),
            batch(4, 1),
            marker(5, 7, ABORT),
            batch(6, 1, producer=7, transactional=True),
            marker(7, 8, COMMIT),
            batch(8, 1, producer=8, transactional=True),
            batch(9, 1, producer=7),
            marker(10, 7, COMMIT),
        )
    )
    assert read(data, 0, 11, ((7, 0),)) == [2, 3, 4, 6, 8, 9]
    assert read(data, 0, 11) == [0, 1, 2, 3, 4, 6, 8, 9]


def test_a_read_may_begin_inside_an_aborted_transaction() -> None:
    data = batch(4, 2, producer=7, transactional=True) + marker(6, 7, ABORT) + batch(7, 1, producer=7, transactional=True)
    assert read(data, 5, 8, ((7, 0),)) == [7]


def test_a_transaction_that_is_aborted_twice_is_left_out_twice() -> None:
    data = b"".join(
        (
            batch(0, 1, producer=7, transactional=True),
            marker(1, 7, ABORT),
            batch(2, 1, producer=7, transactional=True),
            marker(3, 7, ABORT),
            batch(4, 1, producer=7, transactional=True),
        )
    )
    assert read(data, 0, 5, ((7, 0), (7, 2))) == [4]


@pytest.mark.parametrize("name", ["21.source.log", "21.round1.log", "22.round2.log"])
def test_a_log_that_kafka_compacted_is_read_to_its_end(name: str) -> None:
    data = (COMPACTED / name).read_bytes()
    found, columns = decoder(0, 1 << 40)
    found.feed(data, found.headers(data), ())
    seen = offsets(columns)
    assert seen == sorted(set(seen))
    assert seen
    assert found.position > seen[-1]


def damaged(data: bytes, position: int) -> bytes:
    raw = bytearray(data)
    raw[position] ^= 1
    return bytes(raw)


@pytest.mark.parametrize(
    ("data", "settings", "said"),
    [
        (damaged(batch(0, 3), 70), {}, "t-0, offsets 0 to 2: the batch cannot be read: its CRC"),
        (damaged(batch(0, 3), 61), {"check_crcs": False}, "offsets 0 to 2: the batch cannot be read: record"),
        (damaged(batch(0, 3, codec=Codec.GZIP), 61), {"check_crcs": False}, "cannot be read: gzip data"),
        (batch(0, 300, codec=Codec.ZSTD), {"max_batch_bytes": 100}, "maxBatchBytes allows 100"),
        (damaged(batch(0, 3), 16), {}, "t-0 after offset 0: magic 3"),
        (batch(0, 2)[:8] + b"\0\0\0\x0a" + batch(0, 2)[12:], {}, "t-0 after offset 0: batch of 22 bytes"),
        (batch(0, 2) + b"\0" * 8 + b"\xff" * 4 + batch(2, 1)[12:], {}, "t-0 after offset 2: batch of 11 bytes"),
    ],
)
def test_a_batch_that_cannot_be_read_is_named(data: bytes, settings: dict[str, int | bool], said: str) -> None:
    with pytest.raises(UnreadableBatch, match=said):
        read(data, 0, 3, **settings)
