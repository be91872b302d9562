"""Options of logs against the topic options that follow them."""

from __future__ import annotations

from tidelog.config.broker_log import OPTIONS
from tidelog.config.topic_options import TOPIC_OPTIONS

BY_NAME = {option.name: option for option in OPTIONS}
NOT_AS_STRICT = {"flush.ms", "retention.ms", "segment.jitter.ms", "segment.ms"}
"""Kafka bounds these at the topic only; at the broker several options make the value, and it is checked as a whole."""


def test_a_broker_option_has_the_type_and_bounds_of_the_topic_option_that_follows_it() -> None:
    for option in TOPIC_OPTIONS.values():
        for name, _ in option.falls_back_to:
            assert BY_NAME[name].type is option.type, option
            if option.name not in NOT_AS_STRICT:
                assert str(BY_NAME[name].check) == str(option.check), option


def test_what_acts_for_the_broker_acts_for_the_topic() -> None:
    for option in TOPIC_OPTIONS.values():
        for name, _ in option.falls_back_to:
            assert (BY_NAME[name].inert is None) == (option.inert is None), option
