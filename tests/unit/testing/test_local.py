"""What a broker in the test's process does that the facade only passes on."""

from __future__ import annotations

import pytest

from tidelog.testing.local import LocalBroker


def test_it_says_where_it_is() -> None:
    broker = LocalBroker()
    assert broker.where == "not running"
    broker.start()
    try:
        assert broker.where == f"127.0.0.1:{broker.port}"
    finally:
        broker.stop()
    assert broker.where == "not running"


def test_it_cannot_be_killed() -> None:
    with pytest.raises(RuntimeError, match="ask for Broker\\(process=True\\)"):
        LocalBroker().kill()
