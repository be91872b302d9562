"""tidelog's own options."""

from __future__ import annotations

import pytest

from tidelog.config.resolve import BrokerConfig
from tidelog.config.tidelog_options import OPTIONS, PREFIX
from tidelog.model.errors import ConfigError


def test_they_bear_the_prefix_and_act() -> None:
    assert all(option.name.startswith(PREFIX) and option.inert is None for option in OPTIONS)


def test_one_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"tidelog.log.levl is not an option of tidelog. Did you mean tidelog.log.level\?"):
        BrokerConfig.from_properties({"tidelog.log.levl": "debug"})
