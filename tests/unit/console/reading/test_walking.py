from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.console.reading.batches import GONE, Brokers, Log, budget
from tidelog.console.filters.evaluation import compiled
from tidelog.console.reading.rows import View
from tidelog.console.reading.walking import FAR_BEHIND, Walk, cursor_offsets, cursor_text


def lines_of(walk: AsyncIterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    async def collect() -> list[Mapping[str, Any]]:
        return [line async for line in walk]

    return asyncio.run(collect())


def records(lines: list[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [(line["partition"], int(line["offset"])) for line in lines if line["kind"] == "record"]


def pages(brokers: Brokers, direction: str, limit: int, view: View) -> list[tuple[int, int]]:
    """All records, page by page, until a page says that nothing is left."""
    ends = {index: log.end if direction == "back" else 0 for index, log in brokers.logs.items()}
    found: list[tuple[int, int]] = []
    for _ in range(200):
        walk = Walk(brokers, brokers.topic(), view, budget())
        lines = lines_of(walk.newest(ends, limit) if direction == "back" else walk.forward(ends, limit))
        found += records(lines)
        assert len(records(lines)) <= limit
        end = lines[-1]
        assert end["kind"] == "end"
        if end["cursor"] is None:
            assert end["reason"] == "end"
            return found
        ends = cursor_offsets(end["cursor"], direction)
    raise AssertionError("the pages do not end")


def test_newest_first_over_partitions_by_time() -> None:
    brokers = Brokers({0: Log().add(0, "a", "b", at=10).add(2, "c", at=30), 1: Log().add(0, "d", at=20).add(1, "e", at=40)})
    walk = Walk(brokers, brokers.topic(), View(), budget())
    lines = lines_of(walk.newest({0: 3, 1: 2}, 4))
    assert records(lines) == [(1, 1), (0, 2), (1, 0), (0, 1)]
    assert lines[-1] == {**lines[-1], "reason": "limit", "hits": 4, "cursor": cursor_text("back", {0: 1, 1: 0})}


def test_forward_over_partitions_by_time() -> None:
    brokers = Brokers({0: Log().add(0, "a", at=10).add(1, "c", at=30), 1: Log().add(0, "d", at=20).add(1, "e", at=40)})
    walk = Walk(brokers, brokers.topic(), View(), budget())
    assert records(lines_of(walk.forward({0: 0, 1: 0}, 10))) == [(0, 0), (1, 0), (0, 1), (1, 1)]


LOGS = st.dictionaries(st.integers(0, 3), st.lists(st.integers(1, 5), min_size=1, max_size=8), min_size=1, max_size=3)


@given(shape=LOGS, gaps=st.integers(0, 3), limit=st.integers(1, 9), step=st.integers(1, 3), every=st.sampled_from([None, 2, 3]))
@settings(max_examples=80, deadline=None)
def test_pages_have_every_record_once(shape: dict[int, list[int]], gaps: int, limit: int, step: int, every: int | None) -> None:
    """Whatever the batches, the gaps of compaction, the page size and the filter."""
    logs: dict[int, Log] = {}
    wanted: set[tuple[int, int]] = set()
    for index, sizes in shape.items():
        log = logs[index] = Log()
        offset = 0
        for size in sizes:
            log.add(offset, *(f'{{"n":{(offset + each) % (every or 1)}}}' for each in range(size)), at=1000 + offset * 7 + index)
            wanted |= {(index, offset + each) for each in range(size) if (offset + each) % (every or 1) == 0}
            offset += size + gaps
    view = View() if every is None else View(test=compiled("value.n == 0", 0))
    for direction in ("back", "on"):
        found = pages(Brokers(logs, step), direction, limit, view)
        assert len(found) == len(set(found))
        assert set(found) == wanted
        for index in logs:
            own = [offset for part, offset in found if part == index]
            assert own == sorted(own, reverse=direction == "back")


def test_a_partition_that_cannot_be_read_is_named_and_the_rest_goes_on() -> None:
    brokers = Brokers({0: Log(error=GONE), 1: Log().add(0, "a")})
    brokers.logs[0].batches.append((0, 0, b""))
    walk = Walk(brokers, brokers.topic(), View(), budget())
    lines = lines_of(walk.newest({0: 1, 1: 1}, 5))
    assert records(lines) == [(1, 0)]
    assert [line["partition"] for line in lines if line["kind"] == "problem"] == [0]


def test_a_search_ends_with_its_budget_and_can_go_on() -> None:
    brokers = Brokers({0: Log()})
    for offset in range(0, 400, 4):
        brokers.logs[0].add(offset, "a", "b", "c", "d")
    spent = budget(size=1)
    walk = Walk(brokers, brokers.topic(), View(test=compiled('value == "never"', 0)), spent)
    end = lines_of(walk.newest({0: 400}, 5))[-1]
    assert (end["reason"], end["hits"]) == ("budget", 0)
    assert cursor_offsets(end["cursor"], "back")[0] <= 400
    spent = budget(seconds=-1)
    end = lines_of(Walk(brokers, brokers.topic(), View(), spent).forward({0: 0}, 5))[-1]
    assert end["reason"] == "time"


def test_what_arrives_faster_than_it_is_read_is_counted() -> None:
    brokers = Brokers({0: Log().add(0, "a", "b")}, step=1)
    brokers.logs[0].batches.append((FAR_BEHIND * 3, FAR_BEHIND * 3, Log().add(FAR_BEHIND * 3, "z").batches[0][2]))
    walk = Walk(brokers, brokers.topic(), View(), budget())

    async def first() -> tuple[list[int], int]:
        async for rows, left_out in walk.arriving({0: 0}, 0):
            return [row.offset for row in rows], left_out
        raise AssertionError

    offsets, left_out = asyncio.run(first())
    assert offsets == [0, 1]
    assert left_out == FAR_BEHIND * 3 + 1 - 2


@pytest.mark.parametrize("text", ["", "on_0-1", "back_0", "back_0-x", "back_0-99999999999999999999", "back_-1-2"])
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        cursor_offsets(text, "back")


@given(st.dictionaries(st.integers(0, 10_000), st.integers(0, (1 << 63) - 1)))
def test_cursors_survive(offsets: dict[int, int]) -> None:
    assert cursor_offsets(cursor_text("on", offsets), "on") == offsets
