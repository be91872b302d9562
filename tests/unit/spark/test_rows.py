"""Rows as records: what was written is read back by the plain reader, and the compiled twin does exactly the same."""

from __future__ import annotations

import random
import struct
from array import array
from typing import Any

import pytest

from tidelog.client.partitioning import partition_of
from tidelog.records.builder import assemble
from tidelog.records.record import iter_records
from tidelog.spark import rows as module
from tidelog.spark.rows import BadRows, Bytes, PlainEncoder, Rows, plain_partitions


def packed(values: list[bytes | None]) -> Bytes:
    ends = [0]
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        ends.append(ends[-1] + len(value or b""))
        if value is not None:
            bits[row >> 3] |= 1 << (row & 7)
    data = b"".join(value or b"" for value in values)
    return Bytes(struct.pack(f"<{len(ends)}i", *ends), data, None if None not in values else bytes(bits))


def kinds() -> list[Any]:
    try:
        from tidelog.spark import _rows
    except ImportError:
        return [(PlainEncoder, plain_partitions)]
    return [(PlainEncoder, plain_partitions), (_rows.Encoder, _rows.partitions_of)]


@pytest.fixture(params=range(len(kinds())), ids=["plain", "compiled"][: len(kinds())])
def kind(request: pytest.FixtureRequest) -> Any:
    return kinds()[request.param]


def some_rows(seed: int) -> tuple[Rows, list[Any]]:
    rng = random.Random(seed)
    count = rng.choice([1, 7, 8, 9, 100])

    def column(null: float) -> list[bytes | None]:
        return [None if rng.random() < null else rng.randbytes(rng.choice([0, 1, 3, 4, 63, 64, 200, 9000])) for _ in range(count)]

    keys, values = column(rng.choice([0, 0.3, 1])), column(rng.choice([0, 0.3]))
    times = [rng.choice([0, -5, 1 << 40, rng.randrange(1 << 45)]) for _ in range(count)]
    headers: list[Any] = [
        [(rng.choice([b"", b"name", "ü".encode()]), rng.choice([None, b"", rng.randbytes(70)])) for _ in range(rng.randrange(3))]
        for _ in range(count)
    ]
    with_headers = rng.random() < 0.5
    rows = Rows(count, array("q", times), packed(keys), packed(values), headers if with_headers else None)
    return rows, [(keys[i], values[i], times[i], headers[i] if with_headers else []) for i in range(count)]


def key_bytes(key: Any) -> Any:
    return key.encode() if isinstance(key, str) else key


@pytest.mark.parametrize("seed", range(20))
def test_records_are_read_back_as_the_rows_were(kind: Any, seed: int) -> None:
    rows, expected = some_rows(seed)
    chosen = array("i", [i for i in range(rows.rows) if i % 3 != 1])
    body = bytearray()
    base = expected[0][2]
    done, highest = kind[0](rows).append(body, chosen, 0, base, 0, 1 << 30)
    assert done == len(chosen)
    assert highest == max(expected[i][2] for i in chosen)
    batch = assemble(
        bytes(body),
        len(chosen),
        base_offset=0,
        last_offset_delta=len(chosen) - 1,
        leader_epoch=-1,
        attributes=0,
        base_timestamp=base,
        max_timestamp=highest,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )
    found = [(r.key, r.value, r.timestamp, list(r.headers)) for r in iter_records(batch)]
    assert [row[:3] for row in found] == [expected[i][:3] for i in chosen]
    assert [[(key_bytes(k), v) for k, v in row[3]] for row in found] == [expected[i][3] for i in chosen]


def test_a_body_is_not_filled_beyond_its_limit_but_has_a_record_however_large(kind: Any) -> None:
    rows = Rows(3, array("q", [0, 0, 0]), None, packed([b"a" * 100, b"b" * 100, b"c" * 5000]), None)
    encode, body = kind[0](rows), bytearray()
    chosen = array("i", [0, 1, 2])
    assert encode.append(body, chosen, 0, 0, 0, 150)[0] == 1
    assert 100 < len(body) <= 150
    assert encode.append(body, chosen, 1, 0, 1, 150) == (1, -(1 << 63))
    assert encode.append(bytearray(), chosen, 2, 0, 0, 150)[0] == 3


def test_keys_lie_where_javas_producer_puts_them(kind: Any) -> None:
    keys = [b"", b"a", None, b"foobar", b"x" * 1001]
    assert list(kind[1](packed(keys), 5, 11)) == [-1 if key is None else partition_of(key, 11) for key in keys]
    assert list(kind[1](None, 3, 11)) == [-1, -1, -1]


def test_columns_that_contradict_themselves_are_refused(kind: Any) -> None:
    short = Bytes(struct.pack("<2i", 0, 1), b"a", None)
    wild = Bytes(struct.pack("<3i", 0, 1, 50), b"a", None)
    back = Bytes(struct.pack("<3i", 0, 1, 0), b"a", None)
    for column in (short, wild, back):
        with pytest.raises(BadRows):
            kind[1](column, 2, 3)
        with pytest.raises(BadRows):
            kind[0](Rows(2, array("q", [0, 0]), None, column, None)).append(bytearray(), array("i", [0, 1]), 0, 0, 0, 99)
    with pytest.raises(BadRows):
        rows = Rows(2, array("q", [0, 0]), None, None, None)
        kind[0](rows).append(bytearray(), array("i", [0, 2]), 0, 0, 0, 99)


def test_a_header_without_a_key_is_refused_and_appends_nothing(kind: Any) -> None:
    headers: Any = [[(b"k", b"v")], [(None, b"v")]]
    body = bytearray()
    with pytest.raises(BadRows, match="without a key"):
        kind[0](Rows(2, array("q", [0, 0]), None, None, headers)).append(body, array("i", [0, 1]), 0, 0, 0, 99)
    alone = bytearray()
    kind[0](Rows(1, array("q", [0]), None, None, headers)).append(alone, array("i", [0]), 0, 0, 0, 99)
    assert body == alone


def test_a_topic_without_partitions_is_an_error_and_no_crash(kind: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        kind[1](packed([b"a"]), 1, 0)


@pytest.mark.parametrize("seed", range(30))
def test_the_compiled_encoder_agrees_with_the_plain_one_byte_for_byte(seed: int) -> None:
    fast = pytest.importorskip("tidelog.spark._rows", reason="not compiled here")
    rows, _ = some_rows(1000 + seed)
    bodies = []
    for encode in (PlainEncoder(rows), fast.Encoder(rows)):
        body, told = bytearray(), []
        chosen, done = array("i", range(rows.rows)), 0
        while done < rows.rows:
            more = bytearray()
            done, highest = encode.append(more, chosen, done, 17, done, 5000)
            body += more
            told.append((done, highest))
        bodies.append((bytes(body), told))
    assert bodies[0] == bodies[1]


def test_what_is_compiled_is_used() -> None:
    fast = pytest.importorskip("tidelog.spark._rows", reason="not compiled here")
    assert isinstance(module.encoder(some_rows(1)[0]), fast.Encoder)


def test_without_a_compiler_the_plain_ones_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_compiled", None)
    rows, _ = some_rows(1)
    assert isinstance(module.encoder(rows), PlainEncoder)
    assert list(module.partitions_of(None, 1, 2)) == [-1]
