"""Records as columns: what Kafka's builder wrote arrives as it was meant, and the compiled twin does exactly the same."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tidelog.records.batch import CorruptBatch, iter_headers, read_header
from tidelog.records.builder import RecordData, build_batch, write_varint
from tidelog.records.record import iter_records, records_body
from tidelog.spark.columns import PlainColumns, Taken, Wanted

GOLDEN = Path(__file__).parents[2] / "golden" / "batches"
ALL = Wanted(headers=True)
FAR = (1 << 63) - 1


def twins() -> list[Any]:
    try:
        from tidelog.spark._columns import CompiledColumns
    except ImportError:
        return [PlainColumns]
    return [PlainColumns, CompiledColumns]


@pytest.fixture(params=twins(), ids=lambda kind: kind.__name__)
def make(request: pytest.FixtureRequest) -> Any:
    return request.param


def compiled() -> Any:
    return pytest.importorskip("tidelog.spark._columns", reason="not compiled here").CompiledColumns


def append(columns: Any, batch: bytes, first: int = -FAR, end: int = FAR) -> int:
    header = read_header(batch)
    body = records_body(batch, header)
    time = header.max_timestamp if header.log_append_time else None
    added: int = columns.append(body, header.records_count, header.base_offset, header.base_timestamp, time, first, end)
    return added


def numbers(data: Any, size: int) -> list[int]:
    raw = bytes(data)
    return [int.from_bytes(raw[i : i + size], "little", signed=True) for i in range(0, len(raw), size)]


def strings(column: Any) -> list[bytes | None]:
    ends = numbers(column.offsets, 4)
    data, valid = bytes(column.data), bytes(column.valid)
    assert len(valid) == (len(ends) + 6) // 8
    found = [data[a:b] if valid[i >> 3] >> (i & 7) & 1 else None for i, (a, b) in enumerate(pairwise(ends))]
    assert found.count(None) == column.nulls
    return found


def rows(taken: Taken) -> list[tuple[Any, ...]]:
    assert taken.offset is not None
    assert taken.timestamp is not None
    assert taken.headers is not None
    pairs = list(zip(strings(taken.headers.keys), strings(taken.headers.values), strict=True))
    ends = numbers(taken.headers.offsets, 4)
    headers = [tuple(pairs[a:b]) for a, b in pairwise(ends)]
    valid = bytes(taken.headers.valid)
    assert [bool(valid[i >> 3] >> (i & 7) & 1) for i in range(taken.rows)] == [bool(h) for h in headers]
    columns = (numbers(taken.offset, 8), numbers(taken.timestamp, 8), strings(taken.key), strings(taken.value), headers)
    return list(zip(*columns, strict=True))


def plain(value: Any) -> Any:
    """Buffers of any kind as bytes, for comparison."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    return bytes(value) if isinstance(value, bytes | bytearray) else value


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_of_java_arrives_whole(make: Any, codec: str) -> None:
    batch = (GOLDEN / f"java_{codec}.batch").read_bytes()
    columns = make(ALL)
    assert append(columns, batch) == 40
    expected = [
        (r.offset, r.timestamp * 1000, r.key, r.value, tuple((str(k).encode(), v) for k, v in r.headers))
        for r in iter_records(batch)
    ]
    assert rows(columns.take()) == expected
    assert columns.rows == columns.nbytes == 0


def test_only_the_columns_that_are_wanted_are_made(make: Any) -> None:
    columns = make(Wanted(offset=False, timestamp=False, key=False, value=True))
    append(columns, (GOLDEN / "java_none.batch").read_bytes())
    taken = columns.take()
    assert (taken.rows, taken.offset, taken.timestamp, taken.key, taken.headers) == (40, None, None, None, None)
    assert strings(taken.value)[:2] == [None, b"value number 1 " + b"x" * 40]


def test_records_outside_the_range_are_left_out(make: Any) -> None:
    columns = make(ALL)
    assert append(columns, (GOLDEN / "java_none.batch").read_bytes(), 7, 11) == 4
    assert [row[0] for row in rows(columns.take())] == [7, 8, 9, 10]


def test_batches_follow_one_another_and_columns_begin_anew_when_taken(make: Any) -> None:
    batch = (GOLDEN / "java_none.batch").read_bytes()
    columns = make(ALL)
    append(columns, batch, 0, 3)
    append(columns, batch, 3, 40)
    together = rows(columns.take())
    append(columns, batch)
    assert rows(columns.take()) == together
    assert rows(columns.take()) == []


def test_the_brokers_clock_is_every_records_timestamp(make: Any) -> None:
    columns = make(Wanted(offset=False, key=False, value=False))
    body = records_body(batch := (GOLDEN / "java_none.batch").read_bytes(), read_header(batch))
    columns.append(body, 40, 0, 5, 777, 0, 2)
    assert numbers(columns.take().timestamp, 8) == [777_000, 777_000]


def record(
    *, key: bytes | None = None, value: bytes | None = b"v", delta: int = 0, time: int = 0, headers: bytes = b"\0"
) -> bytes:
    body = b"\0" + write_varint(time) + write_varint(delta)
    for part in (key, value):
        body += write_varint(-1 if part is None else len(part)) + (part or b"")
    body += headers
    return write_varint(len(body)) + body


@pytest.mark.parametrize(
    ("time", "micros"),
    [(-1, -1000), (FAR // 1000, FAR // 1000 * 1000), (FAR // 1000 + 1, FAR // 1000 * 1000), (-FAR, -(FAR // 1000) * 1000)],
)
def test_a_timestamp_that_microseconds_cannot_hold_becomes_the_farthest(make: Any, time: int, micros: int) -> None:
    columns = make(ALL)
    columns.append(record(time=time), 1, 0, 0, None, -FAR, FAR)
    assert rows(columns.take())[0][1] == micros


def test_numbers_wrap_as_the_jvm_adds(make: Any) -> None:
    columns = make(ALL)
    columns.append(record(delta=5, time=2), 1, FAR, FAR, None, -FAR - 1, FAR)
    offset, micros = rows(columns.take())[0][:2]
    assert offset == -FAR + 3
    assert micros == -(FAR // 1000) * 1000


def test_a_header_key_that_is_not_utf8_is_read_as_java_reads_it(make: Any) -> None:
    columns = make(ALL)
    body = record(headers=b"\x04\x06a\xff\xc3\x01\x04\xc3\xa9\x04ok")
    columns.append(body, 1, 0, 0, None, 0, 9)
    assert rows(columns.take())[0][4] == (("a\ufffd\ufffd".encode(), None), ("é".encode(), b"ok"))


GOOD = record(key=b"k") + record(delta=1)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"", 1),
        (b"", -1),
        (GOOD, 1),
        (GOOD, 3),
        (GOOD, 1 << 40),
        (GOOD, 0),
        (GOOD[:-1], 2),
        (b"\xff" * 30, 2),
        (b"\x00", 1),
        (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" + GOOD, 1),
        (record(headers=b"\x7e"), 1),
        (record(headers=b"\x01"), 1),
        (record(headers=b"\x02\x01\x00"), 1),
        (record(headers=b"\x02\x00\x03"), 1),
        (record(headers=b"\x02\x02a\x7e"), 1),
        (record(headers=b"\0x"), 1),
        (b"\x0c\0\0\0\x03\x00\0", 1),
        (b"\x0c\0\0\0\x7e\x00\0", 1),
        (b"\x0c\0\0\0\x01\x05\0", 1),
    ],
)
def test_what_is_no_batch_of_that_many_records_is_refused_and_changes_nothing(make: Any, body: bytes, count: int) -> None:
    columns = make(ALL)
    append(columns, (GOLDEN / "java_none.batch").read_bytes(), 0, 5)
    with pytest.raises(CorruptBatch):
        columns.append(body, count, 0, 0, None, 0, 100)
    columns.append(GOOD, 2, 50, 0, None, 0, 100)
    after = rows(columns.take())
    assert [row[0] for row in after] == [0, 1, 2, 3, 4, 50, 51]
    assert after[5][2:] == (b"k", b"v", ())


def test_columns_that_would_grow_past_32_bits_are_to_be_taken_out_first(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if make is not PlainColumns:
        pytest.skip("the compiled limit is a constant")
    monkeypatch.setattr("tidelog.spark.columns.MAX_COLUMN_BYTES", 20)
    columns = make(ALL)
    columns.append(GOOD, 2, 0, 0, None, 0, 9)
    with pytest.raises(OverflowError, match="take the columns out first"):
        columns.append(GOOD, 2, 2, 0, None, 0, 9)
    assert columns.take().rows == 2


def some_batch(random_: random.Random) -> bytes:
    def blob(limit: int) -> bytes | None:
        return None if random_.random() < 0.2 else random_.randbytes(random_.choice((0, 1, 5, limit)))

    records = [
        RecordData(
            timestamp=1_700_000_000_000 + random_.randrange(-10_000, 10_000),
            key=blob(70),
            value=blob(300),
            headers=tuple((random_.choice(("h", "é", "", "long" * 40)), blob(20)) for _ in range(random_.choice((0, 0, 1, 3)))),
        )
        for _ in range(random_.randrange(1, 40))
    ]
    return bytes(build_batch(records, base_offset=random_.randrange(1 << 40)))


def both(body: bytes, count: int, base: int, times: int, first: int, end: int, plain_: Any, fast: Any) -> None:
    outcomes = []
    for columns in (plain_, fast):
        try:
            outcomes.append(columns.append(body, count, base, times, None, first, end))
        except CorruptBatch:
            outcomes.append("corrupt")
    assert outcomes[0] == outcomes[1]
    assert (plain_.rows, plain_.nbytes) == (fast.rows, fast.nbytes)


@pytest.mark.parametrize("size", [0, 1, 100, 1 << 20])
def test_room_that_was_made_changes_nothing_but_the_room(make: Any, size: int) -> None:
    one, other = make(ALL), make(ALL)
    for batch in (some_batch(random.Random(seed)) for seed in range(30)):
        other.expect(size // 10, size)
        append(one, batch)
        append(other, batch)
    assert plain(one.take()) == plain(other.take())
    assert plain(one.take()) == plain(other.take())


def test_a_batch_that_breaks_off_leaves_no_bits(make: Any) -> None:
    good = record(key=b"k", headers=b"\x02\x02h\x02v")
    columns, untouched = make(ALL), make(ALL)
    for each in (columns, untouched):
        each.append(good * 3, 3, 0, 0, None, 0, 9)
    for broken in (good * 3 + b"\xff", good * 40 + b"\x00"):
        with pytest.raises(CorruptBatch):
            columns.append(broken, broken.count(good) + 1, 0, 0, None, 0, 9)
    for each in (columns, untouched):
        each.append(record(value=None), 1, 4, 0, None, 0, 9)
    assert plain(columns.take()) == plain(untouched.take())


@pytest.mark.parametrize("seed", range(20))
def test_the_compiled_columns_agree_with_the_plain_ones_byte_for_byte(seed: int) -> None:
    fast_kind = compiled()
    random_ = random.Random(seed)
    wanted = Wanted(*(random_.random() < 0.8 for _ in range(5)))
    one, other = PlainColumns(wanted), fast_kind(wanted)
    for _ in range(30):
        batch = some_batch(random_)
        header = next(iter_headers(batch))
        body = bytearray(records_body(batch, header))
        count = header.records_count
        for _ in range(random_.choice((0, 0, 1, 3))):
            spot = random_.randrange(len(body))
            kind = random_.randrange(4)
            if kind == 0:
                body[spot] ^= 1 << random_.randrange(8)
            elif kind == 1:
                body[spot] = random_.choice((0, 0x7F, 0x80, 0xFF))
            elif kind == 2:
                del body[spot:]
            else:
                count += random_.choice((-1, 1))
            if not body:
                break
        first = header.base_offset + random_.choice((-5, 0, 3))
        end = first + random_.choice((0, 4, 1000))
        both(bytes(body), count, header.base_offset, header.base_timestamp, first, end, one, other)
        if random_.random() < 0.2:
            assert plain(one.take()) == plain(other.take())
    assert plain(one.take()) == plain(other.take())
