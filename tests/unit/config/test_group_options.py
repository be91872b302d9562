"""The group table."""

from __future__ import annotations

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.group_options import CLIENT_METRICS_OPTIONS, GROUP_OPTIONS


def test_a_group_option_has_the_type_and_default_of_the_broker_option_that_it_follows() -> None:
    for option in GROUP_OPTIONS.values():
        for name, _ in option.falls_back_to:
            assert (BROKER_OPTIONS[name].type, BROKER_OPTIONS[name].default) == (option.type, option.default)


def test_client_metrics_follow_nobody() -> None:
    assert not [option for option in CLIENT_METRICS_OPTIONS.values() if option.falls_back_to]
