from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.asking.resets import KINDS, Target, moves
from tidelog.console.reading.fetching import Bounds

AT = ("orders", 0)
LIMITS = Bounds(40, 100, 100)


def after(target: Target, before: int | None = 60, by_time: int | None = None) -> tuple[str | None, str | None]:
    row = moves(target, {AT: before}, {AT: LIMITS}, {AT: by_time})[0].row()
    return row.after, row.note


def test_each_form_of_a_reset() -> None:
    assert after(Target("earliest")) == ("40", "20 records again")
    assert after(Target("latest")) == ("100", "40 records skipped")
    assert after(Target("offset", 70)) == ("70", "10 records skipped")
    assert after(Target("shift", -5)) == ("55", "5 records again")
    assert after(Target("time", 1), by_time=90) == ("90", "30 records skipped")
    assert after(Target("time", 1), by_time=None) == ("100", "40 records skipped")
    assert after(Target("offset", 60)) == ("60", "stays")
    assert after(Target("earliest"), before=None) == ("40", "had no offset")


def test_records_that_were_gone_are_not_counted_as_skipped() -> None:
    assert after(Target("earliest"), before=10) == ("40", "30 records were gone already")
    assert after(Target("latest"), before=10) == ("100", "60 records skipped, 30 records were gone already")


def test_what_cannot_move_says_why() -> None:
    assert after(Target("shift", 1), before=None) == (None, "it has no committed offset to shift")
    (move,) = moves(Target("latest"), {AT: 1}, {AT: Bounds(error="LEADER_NOT_AVAILABLE")}, {})
    assert (move.after, "LEADER_NOT_AVAILABLE" in (move.problem or "")) == (None, True)


@given(st.sampled_from(KINDS), st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 62))
def test_no_reset_leaves_the_log(kind: str, value: int, before: int) -> None:
    (move,) = moves(Target(kind, value), {AT: before}, {AT: LIMITS}, {AT: value})
    assert move.after is not None
    assert 40 <= move.after <= 100


def test_flags_of_the_command() -> None:
    assert Target("time", 1_764_309_600_123).flags() == ["--to-datetime", "2025-11-28T06:00:00.123"]
    assert Target("shift", -3).flags() == ["--shift-by", "-3"]
    assert Target("earliest").flags() == ["--to-earliest"]


def test_a_time_beyond_the_calendar_has_flags_too() -> None:
    assert Target("time", 253_402_300_799_999).flags() == ["--to-datetime", "9999-12-31T23:59:59.999"]
    assert Target("time", 2**63 - 1).flags() == ["--to-latest"]
