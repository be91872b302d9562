"""What a broker in the test's process does that the facade only passes on."""

from __future__ import annotations

import pytest

from tidelog.testing.local import LocalBroker
from tidelog.testing.permissions import allow
from tidelog.testing.users import Users


def test_it_says_where_it_is() -> None:
    broker = LocalBroker()
    assert broker.where == "not running"
    broker.start()
    try:
        assert broker.where == f"127.0.0.1:{broker.port}"
    finally:
        broker.stop()
    assert broker.where == "not running"


def test_a_start_with_an_acl_that_is_refused_leaves_nothing_running() -> None:
    broker = LocalBroker(users=Users({}, [allow("ann", "read", topic="")]))
    for _ in range(2):
        with pytest.raises(ValueError, match="an ACL was refused"):
            broker.start()
    assert broker.where == "not running"


def test_it_cannot_be_killed() -> None:
    with pytest.raises(RuntimeError, match="ask for Broker\\(process=True\\)"):
        LocalBroker().kill()
