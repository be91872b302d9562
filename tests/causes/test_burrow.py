"""Burrow's rules on histories made for each of them."""

from __future__ import annotations

import pytest

from tests.causes.burrow import Commit, History, group_status, partition_status


def history(*offsets: int, ends: tuple[int, ...] = (100, 100), every: int = 1000, lags: tuple[int, ...] = ()) -> History:
    commits = [
        Commit(number * every, offset, lags[number] if lags else ends[-1] - offset) for number, offset in enumerate(offsets)
    ]
    return History(commits, ends)


@pytest.mark.parametrize(
    ("found", "now_ms", "status"),
    [
        (history(10, 20, 30), 2500, "OK"),
        (history(10, 20, 30), 9000, "STOP"),
        (history(10, 20, 30, ends=(30, 100)), 9000, "OK"),
        (history(10, 20, 100), 9000, "OK"),
        (history(50, 60, 20, 30), 3500, "REWIND"),
        (history(50, 60, 20, 60, 70), 4500, "OK"),
        (history(30, 30, 30), 2500, "STALL"),
        (history(30, 30, 30, lags=(0, 70, 70)), 2500, "OK"),
        (history(10, 20, 30, lags=(10, 20, 30)), 2500, "WARN"),
        (history(30), 1, "STOP"),
        (history(), 1, "OK"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_each_rule(found: History, now_ms: int, status: str) -> None:
    assert partition_status(found, now_ms) == status


def test_the_window_has_ten_commits() -> None:
    back = history(90, *range(20, 30))
    assert partition_status(back, 10_500) == "OK", "the one that it went back from is out of the window"


def test_a_group_is_as_bad_as_its_worst_partition() -> None:
    fine, stopped, slow = history(10, 20), history(30), history(10, 20, 30, lags=(10, 20, 30))
    assert group_status({("t", 0): fine}, 1500) == "OK"
    assert group_status({("t", 0): fine, ("t", 1): stopped}, 1500) == "ERR (STOP)"
    assert group_status({("t", 0): slow}, 2500) == "WARN"
