"""Which damaged range is meant."""

import pytest

from tidelog.storage.rotten_range import RottenRange, next_rotten, readable_parts, rotten_at, rotten_with

FIRST = RottenRange(100, 200, 10, 20)
SECOND = RottenRange(300, 400, 30, 35)
MISSING = RottenRange(500, 500, 50, 60)
ALL = (FIRST, SECOND, MISSING)


def test_by_position_and_by_offset() -> None:
    assert [rotten_at(ALL, each) for each in (99, 100, 150, 300, 500)] == [None, FIRST, None, SECOND, None]
    assert [rotten_with(ALL, each) for each in (9, 10, 19, 20, 34, 35, 50, 60)] == [
        None, FIRST, FIRST, None, SECOND, None, MISSING, None,
    ]  # fmt: skip


def test_the_next_one_has_bytes_or_lies_behind() -> None:
    assert [next_rotten(ALL, each) for each in (0, 100, 101, 400, 500)] == [FIRST, FIRST, SECOND, MISSING, None]


@pytest.mark.parametrize(
    ("start", "end", "parts"),
    [
        (0, 600, [(0, 100), (200, 300), (400, 500), (500, 600)]),
        (100, 350, [(200, 300)]),
        (200, 300, [(200, 300)]),
        (0, 50, [(0, 50)]),
        (300, 400, []),
    ],
)
def test_parts_that_can_be_read(start: int, end: int, parts: list[tuple[int, int]]) -> None:
    assert readable_parts(ALL, start, end) == parts
