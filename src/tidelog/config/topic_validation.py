"""May these settings be given to a topic: asked by the controller before it writes them (INVALID_CONFIG when not)."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.config.options import Value
from tidelog.config.topic_options import TOPIC_OPTIONS
from tidelog.config.unknown_settings import unknown_topic_option
from tidelog.model.errors import ConfigError


def validate_topic_configs(overrides: Mapping[str, str | None]) -> None:
    """ConfigError about the first setting of a topic that does not hold; all known settings are taken, acted on or not."""
    values: dict[str, Value] = {}
    for name, text in overrides.items():
        option = TOPIC_OPTIONS.get(name)
        if option is None:
            raise unknown_topic_option(name, TOPIC_OPTIONS)
        if text is None:
            raise ConfigError(f"{name} has no value. Leave it out to follow the broker's setting.")
        values[name] = option.parse(text)
        if option.refuses is not None and values[name] != option.default:
            raise ConfigError(f"{name} is {text}, but {option.refuses}. Leave it out.")
    low, high = values.get("min.compaction.lag.ms"), values.get("max.compaction.lag.ms")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise ConfigError(f"min.compaction.lag.ms is {low}, but must not be greater than max.compaction.lag.ms, which is {high}.")
