from __future__ import annotations

import sys

import pytest

from tidelog.server.native import fetch_lanes, produce_lanes, read_steps


def test_a_run_may_do_without_compiled_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_PURE", "1")
    assert fetch_lanes() is None
    assert produce_lanes() is None
    assert read_steps() is None


def test_lanes_that_were_not_compiled_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELOG_PURE", raising=False)
    monkeypatch.setitem(sys.modules, "tidelog.server.serving._fetch_lane", None)
    monkeypatch.setitem(sys.modules, "tidelog.broker._produce_lane", None)
    monkeypatch.setitem(sys.modules, "tidelog.server.serving._read_step", None)
    assert fetch_lanes() is None
    assert produce_lanes() is None
    assert read_steps() is None
