"""What the forms of a reset ask for, before any broker is asked."""

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.group_state import Committed
from tidelog.cli.tools.offset_reset import from_file, milliseconds, shifted, timestamp_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1H", 3_600_000), ("P1DT2H3M4.5S", 93_784_500), ("PT0.001S", 1), ("-PT1S", -1000), ("pt5m", 300_000)],
)
def test_durations_are_iso_8601(text, expected):
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["1h", "P", "PT", "PT1X", "P1H", ""])
def test_other_durations_are_refused_with_the_form(text):
    with pytest.raises(CommandFailed, match="PnDTnHnMnS"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.250", 1250),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_dates_without_a_zone_are_utc(text, expected):
    assert timestamp_ms(text) == expected


@pytest.mark.parametrize("text", ["garbage", "1970-01-01", "1970-01-01 00:00:00", "1970-13-01T00:00:00"])
def test_other_dates_are_refused_with_the_form(text):
    with pytest.raises(CommandFailed, match="YYYY-MM-DDThh"):
        timestamp_ms(text)


def test_a_shift_needs_an_offset_to_begin_with():
    old = {("t", 0): Committed(10, -1)}
    assert shifted([("t", 0)], old, -3) == {("t", 0): 7}
    with pytest.raises(CommandFailed, match="t-1"):
        shifted([("t", 0), ("t", 1)], old, 1)


def test_a_file_has_three_columns_or_the_group_in_front(tmp_path):
    file = tmp_path / "plan.csv"
    file.write_text("a,0,5\ng,b,1,6\nother,b,2,7\n\n")
    assert from_file(str(file), "g") == {("a", 0): 5, ("b", 1): 6}
    file.write_text("a,0,5\na,zero,1\n")
    with pytest.raises(CommandFailed, match="Line 2"):
        from_file(str(file), "g")
