"""The fixtures as other projects use them."""

from __future__ import annotations

from tidelog.testing import Broker

seen: list[int] = []


def test_a_fresh_broker_has_nothing_in_it(tidelog_broker: Broker) -> None:
    assert tidelog_broker.topics == []
    tidelog_broker.produce("t", "a")


def test_the_next_test_gets_another_one(tidelog_broker: Broker) -> None:
    assert tidelog_broker.topics == []


def test_the_sessions_broker_is_filled_here(tidelog_session_broker: Broker) -> None:
    tidelog_session_broker.produce("t", "a")
    seen.append(tidelog_session_broker.port)


def test_and_empty_again_here_though_it_is_the_same(tidelog_session_broker: Broker) -> None:
    assert tidelog_session_broker.topics == []
    assert seen == [tidelog_session_broker.port]
