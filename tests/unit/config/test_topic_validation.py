"""Settings of a topic before they are written."""

from __future__ import annotations

import pytest

from tidelog.config.options import value_text
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.config.topic_validation import validate_topic_configs
from tidelog.model.errors import ConfigError


def test_every_known_setting_is_taken_whether_it_is_acted_on_or_not() -> None:
    validate_topic_configs({name: value_text(o.default) for name, o in TOPIC_OPTIONS.items() if o.default is not None})


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"retention.ms": None}, "retention.ms has no value"),
        ({"retention.ms": "-2"}, "at least -1"),
        ({"remote.storage.enable": "true"}, "tiered storage"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "must not be greater than max.compaction.lag.ms"),
    ],
)
def test_one_that_does_not_hold_is_named(overrides: dict[str, str | None], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        validate_topic_configs(overrides)
