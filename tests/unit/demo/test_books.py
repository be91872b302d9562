"""The books hold when everything is where it belongs, and name the line when one row is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from demo.books import Line, Tables, lines, rows
from demo.city import MINUTE_MS, OPENING_MS, TOPICS, Ledger
from demo.view import Board, Lines, books_table, drawn, lines_table

MINUTE = OPENING_MS
LEDGER = Ledger(
    Counter({"bookings": 10, "positions": 10, "payments": 10}),
    Counter(dict.fromkeys(TOPICS, 1)),
    Counter(dict.fromkeys(TOPICS, 2)),
    Counter({"bookings": 1, "positions": 1}),
    OPENING_MS + 3 * MINUTE_MS,
)
TABLES = Tables(
    dict.fromkeys(TOPICS, 10),
    dict.fromkeys(TOPICS, 1),
    {"bookings": (7, 1), "positions": (7, 1), "payments": (7, 0)},
    dict.fromkeys(TOPICS, 7),
    {("centre", MINUTE): (4, 2), ("airport", MINUTE): (1, 3), ("centre", MINUTE + 2 * MINUTE_MS): (1, 1), ("centre", 0): (1, 1)},
)
SURGES = [("centre", MINUTE, 4, 2), ("airport", MINUTE, 1, 3)]


def wrong(tables: Tables = TABLES, surges: list[tuple[str, int, int, int]] = SURGES, logged: int | None = 30) -> list[str]:
    found: list[Line] = lines(LEDGER, dict(LEDGER.sent), tables, surges, logged)
    return [line.said for line in found if not line.holds]


def test_everything_where_it_belongs_adds_up() -> None:
    assert wrong() == []
    assert wrong(logged=None) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bronze": {**TABLES.bronze, "payments": 9}}, "payments: produced = bronze"),
        ({"silver": {**TABLES.silver, "bookings": (6, 1)}}, "bookings: bronze = silver + duplicates + dead letters"),
        ({"ids": {**TABLES.ids, "positions": 6}}, "positions: rows in silver = different ids"),
        ({"letters": {**TABLES.letters, "payments": 0}}, "payments: bad records = dead letters"),
        ({"silver": {**TABLES.silver, "bookings": (7, 0)}}, "bookings: late records = rows of before the opening"),
        ({"activity": {**TABLES.activity, ("airport", MINUTE): (2, 3)}}, "surge: rows that say what silver says"),
    ],
)
def test_a_row_that_is_missing_or_too_many_is_named(changed: dict[str, Any], said: str) -> None:
    assert said in wrong(replace(TABLES, **changed))


def test_a_surge_that_is_missing_twice_or_of_late_records_is_named() -> None:
    rows_line = "surge: rows = zones and minutes that are over"
    assert rows_line in wrong(surges=SURGES[:1])
    assert rows_line in wrong(surges=[*SURGES, SURGES[0]])
    assert rows_line in wrong(surges=[*SURGES, ("centre", 0, 1, 1)])
    assert wrong(logged=29) == ["all: produced = read by analytics-logger"]


def test_boards_and_books_can_be_seen() -> None:
    board = Board("now", 1.5, OPENING_MS, {"bookings": 3}, {"bookings": 2}, {"bookings": 1}, {"g": (None, "x")}, {"centre": 2.5})
    console = Console(width=120, record=True, quiet=False, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console:
        console.print(drawn(board))
        with Lines(console) as plain:
            plain.show(board)
        console.print(books_table(rows(LEDGER, TABLES), 2))
        console.print(lines_table(lines(LEDGER, dict(LEDGER.sent), TABLES, SURGES, None)))
    text = console.export_text()
    assert "18:00:00 in the city" in text
    assert "lag g ?" in text
    assert "2.50x" in text
    assert "NO" not in text
