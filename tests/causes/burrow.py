"""Burrow's verdict by its published rules, as a pure function over what it would have sampled. It is here for comparison alone.

A window of the last commits of a partition, and the ends of its log at those times. Rules in their order: STOP, REWIND, OK when
the lag was nothing somewhere in the window, STALL, WARN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

INTERVALS: Final = 10
"""Commits in a window."""
ERR: Final = ("STOP", "STALL", "REWIND")
OK, WARN = "OK", "WARN"


@dataclass(frozen=True, slots=True)
class Commit:
    """``lag``: to the end of the log as it was known then."""

    at_ms: int
    offset: int
    lag: int


@dataclass(frozen=True, slots=True)
class History:
    """A partition: its commits, the newest last, and the sampled ends of its log."""

    commits: Sequence[Commit]
    ends: Sequence[int]


def partition_status(history: History, now_ms: int, allowed_lag: int = 0) -> str:
    """OK, WARN, STOP, STALL or REWIND."""
    window = list(history.commits)[-INTERVALS:]
    if not window or not history.ends:
        return OK
    last = window[-1]
    if history.ends[-1] - last.offset <= allowed_lag:
        return OK
    silent = now_ms - last.at_ms > last.at_ms - window[0].at_ms
    if silent and not any(end <= last.offset for end in history.ends[-INTERVALS:]):
        return "STOP"
    if _went_back(window):
        return "REWIND"
    if any(each.lag <= allowed_lag for each in window):
        return OK
    if all(each.offset == last.offset for each in window):
        return "STALL"
    return OK if any(after.lag < before.lag for before, after in pairwise(window)) else WARN


def _went_back(window: Sequence[Commit]) -> bool:
    """Some offset is lower than the one before it, and no later one came back to that."""
    return any(
        after.offset < before.offset and all(later.offset < before.offset for later in window[number + 1 :])
        for number, (before, after) in enumerate(pairwise(window))
    )


def group_status(histories: Mapping[tuple[str, int], History], now_ms: int) -> str:
    """OK, WARN, or ERR with the worst partition's status."""
    found = [partition_status(each, now_ms) for each in histories.values()]
    wrong = sorted({each for each in found if each in ERR})
    if wrong:
        return f"ERR ({', '.join(wrong)})"
    return WARN if WARN in found else OK
