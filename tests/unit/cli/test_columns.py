"""Tables in Kafka's layout, that fit a terminal."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys

import pytest

from tidelog.cli.columns import Column, as_json, fitting, table

COLUMNS = [Column("GROUP", "group", 20), Column("TOPIC", "topic", 10), Column("LAG", "lag", 5, pad=False)]
ROWS = [{"group": "g", "topic": "a-long-name-of-a-topic", "lag": 1}, {"group": "h", "topic": "t", "lag": None}]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_columns_are_as_wide_as_kafkas_and_wider_where_a_value_needs_it() -> None:
    columns = [Column("GROUP", "group", 8), Column("LAG", "lag", 4), Column("HOST", "host", 0, pad=False)]
    rows = [{"group": "g", "lag": None, "host": "/h"}, {"group": "a-long-name", "lag": 12345, "host": None}]
    assert table(columns, rows).splitlines() == ["GROUP       LAG   HOST", "g           -     /h", "a-long-name 12345 -"]
    assert json.loads(as_json(rows)) == rows


def test_a_table_without_rows_is_its_title() -> None:
    assert table([Column("GROUP", "group", 8), Column("X", "x", 2)], []) == "GROUP    X "


@pytest.mark.parametrize(
    ("room", "expected"),
    [(80, [20, 10, 0]), (40, [20, 10, 0]), (39, [2, 22, 3]), (29, [2, 22, 3]), (20, [2, 13, 3]), (3, [2, 8, 3])],
)
def test_what_does_not_fit_gives_up_blanks_first_then_the_ends_of_the_longest(room: int, expected: list[int]) -> None:
    needed = [2, 4 if expected == [20, 10, 0] else 22, 3]
    assert fitting([20, 10, 0], needed, room) == expected


def test_on_a_narrow_terminal_lines_are_not_longer_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((24, 20)))
    monkeypatch.setattr(sys, "stdout", Terminal())
    lines = table(COLUMNS, ROWS).splitlines()
    assert max(map(len, lines)) <= 24
    assert "\u2026" in lines[1]


def test_a_name_that_a_client_chose_controls_no_terminal() -> None:
    columns = [Column("GROUP", "group", 8), Column("CLIENT-ID", "client", 0, pad=False)]
    rows = [{"group": "g\x1b[2J", "client": "a\nTOTAL 0"}]
    assert table(columns, rows).splitlines() == ["GROUP    CLIENT-ID", r"g\x1b[2J a\nTOTAL 0"]
    assert json.loads(as_json(rows)) == rows
