from __future__ import annotations

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.coordinator.transaction.settings import TransactionSettings


def test_defaults_are_those_of_the_options() -> None:
    settings = TransactionSettings()
    assert [
        settings.max_timeout_ms,
        settings.abort_check_interval_ms,
        settings.id_expiration_ms,
        settings.id_expiration_check_interval_ms,
    ] == [
        BROKER_OPTIONS[name].default
        for name in (
            "transaction.max.timeout.ms",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
            "transactional.id.expiration.ms",
            "transaction.remove.expired.transaction.cleanup.interval.ms",
        )
    ]
