"""Options of the node and its quorum."""

from __future__ import annotations

from tidelog.config.broker_quorum import OPTIONS
from tidelog.config.resolve import BrokerConfig


def test_what_a_node_must_be_told_is_told_by_the_defaults_of_tidelog() -> None:
    required = {option.name for option in OPTIONS if option.required}
    assert required == {"node.id", "process.roles", "controller.listener.names"}
    assert required <= set(BrokerConfig.from_properties({}).static)


def test_timers_of_elections_count() -> None:
    assert not any(option.inert for option in OPTIONS if option.name.startswith("controller.quorum.election."))
