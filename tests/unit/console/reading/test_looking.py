from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.console.reading.batches import Brokers, Log, batch, budget
from tidelog.console.reading import looking, walking
from tidelog.console.reading.looking import Look
from tidelog.console.reading.rows import Row, View
from tidelog.console.reading.scanning import Scan
from tidelog.console.reading.walking import KEPT_ROWS, Walk
from tidelog.records.checksum import crc32c
from tidelog.records.compression import Codec

MANY = 3000
BOMB = batch(0, *["x" * 200] * MANY, codec=Codec.GZIP)


def scan(begin: int = 0) -> Scan:
    return Scan(0, BOMB, begin, MANY, ())


def test_a_page_of_a_batch_makes_no_rows_of_the_rest() -> None:
    look, found = Look(View(), 10, last=False), scan()
    look.through(found)
    assert ([row.offset for row in look.rows], look.seen, found.next_offset) == (list(range(10)), 10, 10)
    look, found = Look(View(), 10, last=True), scan(5)
    look.through(found)
    assert ([row.offset for row in look.rows], look.wanted, found.next_offset) == (list(range(MANY - 10, MANY)), MANY - 5, MANY)


@pytest.mark.parametrize(("what", "most", "seen"), [("MOST_RECORDS", 100, 100), ("MOST_BYTES", 1000, 5)])
def test_a_look_ends_at_its_bounds(monkeypatch: pytest.MonkeyPatch, what: str, most: int, seen: int) -> None:
    monkeypatch.setattr(looking, what, most)
    look, found = Look(View(), 10, last=True), scan()
    look.through(found)
    assert (look.seen, found.next_offset) == (seen, seen)


def test_bounded_looks_find_everything_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_RECORDS", 70)
    log = Log([(0, 199, batch(0, *map(str, range(200)), codec=Codec.GZIP))]).add(200, "a", "b")

    async def job() -> list[list[int]]:
        found = []
        for newest in (True, False):
            brokers = Brokers({0: log})
            walk = Walk(brokers, brokers.topic(), View(), budget())
            lines = walk.newest({0: 202}, 500) if newest else walk.forward({0: 0}, 500)
            found.append([int(line["offset"]) async for line in lines if line["kind"] == "record"])
        return found

    assert asyncio.run(job()) == [list(range(201, -1, -1)), list(range(202))]


def test_a_tail_keeps_the_newest_rows_and_counts_the_others() -> None:
    brokers = Brokers({0: Log([(0, MANY - 1, BOMB)])})

    async def job() -> tuple[list[Row], int]:
        return await anext(Walk(brokers, brokers.topic(), View(), budget()).arriving({0: 0}, 0))

    rows, left_out = asyncio.run(job())
    assert (len(rows), rows[-1].offset, left_out) == (KEPT_ROWS, MANY - 1, MANY - KEPT_ROWS)


def test_the_thread_ends_soon_after_its_reader() -> None:
    begun, goes_on = threading.Event(), threading.Event()
    seen: list[int] = []

    class Slow(View):
        def row(self, each: Any) -> Row | None:
            seen.append(each.offset)
            begun.set()
            goes_on.wait()
            return None

    async def job() -> None:
        brokers = Brokers({0: Log([(0, MANY - 1, BOMB)])})
        walk = Walk(brokers, brokers.topic(), Slow(), budget()).forward({0: 0}, 10)

        async def read() -> list[Mapping[str, Any]]:
            return [line async for line in walk]

        reading = asyncio.create_task(read())
        await asyncio.to_thread(begun.wait)
        reading.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not reading.done()  # the thread is still one of this search
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(job())
    assert len(seen) == 1


def test_a_look_that_takes_long_is_gone_on_with_at_its_next_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "LONGEST_LOOK_S", 0.0)
    looks = 0

    class Slow(View):
        def row(self, each: Any) -> Row | None:
            time.sleep(0.02)  # the loop ends the look meanwhile
            return super().row(each)

    class Counted(Look):
        def through(self, scan: Scan) -> None:
            nonlocal looks
            looks += 1
            super().through(scan)

    monkeypatch.setattr(walking, "Look", Counted)

    async def job() -> list[str]:
        brokers = Brokers({0: Log().add(0, *"abcdef")})
        walk = Walk(brokers, brokers.topic(), Slow(), budget())
        return [line["offset"] async for line in walk.forward({0: 0}, 10) if line["kind"] == "record"]

    assert asyncio.run(job()) == ["0", "1", "2", "3", "4", "5"]
    assert looks > 1


def test_a_record_outside_of_its_batch_is_a_problem() -> None:
    """Offsets below the batch would be skipped one by one, millions of them, and never shown."""
    data = bytearray(batch(10, "a", "b"))
    assert data.count(b"\x02\x06k11") == 1
    data[data.index(b"\x02\x06k11")] = 0x13  # the delta 1 becomes -10
    found = Scan(0, with_crc(data), 0, 12, ())
    assert [each.offset for each in found] == [10]
    assert "offset 0" in found.problems[0][1]


def with_crc(data: bytearray) -> bytes:
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)
