"""Which handler a listener gets; tests/property/test_follower_twins.py compares the lane with its twin."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.unit.replication.world import World
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.table import BROKER_APIS
from tidelog.protocol.api_keys import ApiKey
from tidelog.server.serving.follower_lane import compiled, with_follower_lane


def node() -> Any:
    return World().context(17).node


def test_a_run_may_do_without_the_compiled_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_PURE", "1")
    dispatcher = Dispatcher(node(), BROKER_APIS)
    assert compiled() is None and with_follower_lane(node(), dispatcher) == dispatcher.handle


def test_a_lane_that_was_not_compiled_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELOG_PURE", raising=False)
    monkeypatch.setitem(sys.modules, "tidelog.server.replication._follower_lane", None)
    assert compiled() is None


def test_no_lane_stands_before_a_dispatcher_without_fetch() -> None:
    dispatcher = Dispatcher(node(), {ApiKey.PRODUCE: BROKER_APIS[ApiKey.PRODUCE]})
    assert with_follower_lane(node(), dispatcher) == dispatcher.handle


def test_no_lane_stands_for_another_handler() -> None:
    make = compiled()
    if make is None:
        pytest.skip("not compiled")
    served: Any = type("Served", (), {"handler": print, "read": None})
    assert make(node(), served, Dispatcher(node(), BROKER_APIS)) is None


def test_what_is_not_the_lanes_goes_on_to_the_dispatcher() -> None:
    make = compiled()
    if make is None:
        pytest.skip("not compiled")
    seen: list[Any] = []

    class Seen(Dispatcher):
        def handle_unusual(self, session: Any, frame: memoryview, begun: Any = None) -> Any:
            return seen.append((session, bytes(frame))) or "answered"

    dispatcher = Seen(node(), BROKER_APIS)
    lane: Any = make(node(), dispatcher.row(ApiKey.FETCH), dispatcher)
    session: Any = "session"
    for frame in (b"", b"\0\0\0\x0c", b"\0\1\0\x11", b"\0\1\0\x11" + bytes(80)):
        assert lane(session, memoryview(frame)) == "answered" and seen[-1] == (session, frame)
