"""Calls by function: what is shown of two profiles."""

from __future__ import annotations

from bench.pair.calls import differences


def test_the_largest_change_is_first_and_background_work_is_left_out() -> None:
    old = {"a": 1.0, "gone": 2.0, "b": 5.0, "timer": 0.5}
    new = {"a": 1.0, "b": 8.0, "fresh": 2.0, "timer": 0.505}
    assert differences(old, new) == [
        (3.0, "b", 5.0, 8.0),
        (2.0, "fresh", 0, 2.0),
        (-2.0, "gone", 2.0, 0),
    ]
