"""Replays and backfills are numbered by the clock, and clocks go back."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tests.unit.pipeline.samples import model_of
from tidelog.pipeline import backfilling, replaying
from tidelog.pipeline.batches import BatchWriter
from tidelog.pipeline.flows import flows
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange

LATER = 1 << 50
"""The number of an earlier replay or backfill, by a clock that was ahead."""


@pytest.fixture(autouse=True)
def earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink has a batch of that number."""
    had = {"bronze": BatchIdentity("rides", "bronze", LATER, ()), "silver": None}
    monkeypatch.setattr(BatchWriter, "check", lambda *_: None)
    monkeypatch.setattr(BatchWriter, "fill_in", lambda *_: None)
    monkeypatch.setattr(BatchWriter, "remembered", lambda *_: had)


def test_a_replay_is_newer_than_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[int] = []
    replay = replaying._Replay(model_of(), flows(model_of())[0], None, "lake/dead")
    for name, does in (
        ("_claimed", list),
        ("_claim", lambda number: 1),
        ("_finish", lambda number: finished.append(number) or 1),
        ("_reasons", dict),
    ):
        monkeypatch.setattr(replay, name, does)
    assert replay.run(1000).landed == 1
    assert finished == [LATER + 1]


def test_a_backfill_is_newer_than_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr(backfilling, "read_ranges", lambda *_: "rows")
    monkeypatch.setattr(BatchWriter, "write", lambda _, *given: written.append(given))
    ranges = (OffsetRange("rides", "id", 0, 0, 10),)
    backfilling._fill(model_of(), flows(model_of())[0], None, ranges)
    assert written == [("rows", LATER + 1, ranges)]
