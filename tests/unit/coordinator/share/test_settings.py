from __future__ import annotations

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.coordinator.share.settings import ShareCoordinatorSettings


def test_defaults_are_those_of_the_options() -> None:
    settings = ShareCoordinatorSettings()
    updates = BROKER_OPTIONS["share.coordinator.snapshot.update.records.per.snapshot"].default
    cold = BROKER_OPTIONS["share.coordinator.cold.partition.snapshot.interval.ms"].default
    assert settings == (updates, cold)
