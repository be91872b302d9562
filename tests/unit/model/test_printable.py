from __future__ import annotations

import pytest

from tidelog.model.printable import printable


@pytest.mark.parametrize("text", ["", "orders-1", "Grün ist 緑", "a b", 'C:\\n "x"'])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc\0", r"a\nb\r\tc\x00"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J", r"\x9b2J"),
        ("a\u2028b", r"a\u2028b"),
        ("\u202etxt.exe", r"\u202etxt.exe"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_moves_a_cursor_or_begins_a_line_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
