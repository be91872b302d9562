"""The whole table."""

from __future__ import annotations

from tidelog.config.broker import BROKER_OPTIONS, KAFKA_BROKER_OPTIONS


def test_kafkas_options_and_ours_are_all_there_in_order() -> None:
    assert len(KAFKA_BROKER_OPTIONS) == 363
    assert sum(not option.internal for option in KAFKA_BROKER_OPTIONS.values()) == 342
    assert set(BROKER_OPTIONS) - set(KAFKA_BROKER_OPTIONS) == {name for name in BROKER_OPTIONS if name.startswith("tidelog.")}
    assert list(BROKER_OPTIONS) == sorted(BROKER_OPTIONS)


def test_no_two_options_share_an_attribute() -> None:
    assert len({option.attribute for option in BROKER_OPTIONS.values()}) == len(BROKER_OPTIONS)


def test_an_option_that_is_inert_does_not_refuse_as_well() -> None:
    assert not [option for option in BROKER_OPTIONS.values() if option.inert and option.refuses]
