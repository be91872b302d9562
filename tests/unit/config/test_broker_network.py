"""Options of listeners and connections."""

from __future__ import annotations

from tidelog.config.broker_network import OPTIONS
from tidelog.config.resolve import BrokerConfig


def test_foreign_quotas_are_refused_rather_than_taken_literally() -> None:
    assert {option.name for option in OPTIONS if option.refuses} == {"client.quota.callback.class"}


def test_the_largest_fetch_is_at_least_a_kibibyte() -> None:
    config = BrokerConfig.from_properties({"fetch.max.bytes": "1024"})
    assert config.fetch_max_bytes == 1024
