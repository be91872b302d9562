"""Options of producers and transactions."""

from __future__ import annotations

from tidelog.config.broker_transactions import OPTIONS
from tidelog.config.resolve import BrokerConfig


def test_idempotent_producers_are_remembered_for_a_day_and_that_acts() -> None:
    option = next(option for option in OPTIONS if option.name == "producer.id.expiration.ms")
    assert option.inert is None
    assert BrokerConfig.from_properties({}).producer_id_expiration_ms == 86_400_000
