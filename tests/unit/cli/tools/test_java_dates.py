"""Times in Java's patterns."""

from __future__ import annotations

from datetime import datetime

import pytest

from tidelog.cli.tools.java_dates import formatter

MOMENT = datetime(2026, 3, 7, 15, 4, 5, 678_901)  # noqa: DTZ001
MIDNIGHT = datetime(2026, 12, 31)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2026-03-07 15:04:05:678"),
        ("yy/M/d", "26/3/7"),
        ("EEE, MMM d, EEEE MMMM", "Sat, Mar 7, Saturday March"),
        ("hh:mm a, K, k", "03:04 PM, 3, 15"),
        ("D u", "66 6"),
        ("yyyy'T'HH 'o''clock' ''", "2026T15 o'clock '"),
        ("", ""),
    ],
)
def test_a_pattern_is_printed_as_java_prints_it(pattern: str, expected: str) -> None:
    assert formatter(pattern)(MOMENT) == expected


def test_hours_have_four_ways_to_count() -> None:
    assert formatter("H k K h a D")(MIDNIGHT) == "0 24 0 12 AM 365"


def test_a_zone_is_the_one_of_this_machine() -> None:
    offset = MOMENT.astimezone().strftime("%z")
    assert formatter("Z")(MOMENT) == offset
    assert formatter("X" * 3)(MOMENT) in ("Z", f"{offset[:3]}:{offset[3:]}")
    assert formatter("z")(MOMENT) == MOMENT.astimezone().strftime("%Z")


@pytest.mark.parametrize(("pattern", "said"), [("HH:mm:qq", "the letter q is none of"), ("HH'h", "not closed")])
def test_what_cannot_be_printed_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        formatter(pattern)
