from __future__ import annotations

import pytest

from tidelog.config.listener_connections import OwnBounds, bounds_problems, own_bounds
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

CONNECTIONS = "listener.name.plaintext.max.connections"
RATE = "listener.name.plaintext.max.connection.creation.rate"
GREATEST = 2_147_483_647


def test_a_listener_has_its_own_bounds_by_its_name_in_lower_case() -> None:
    layers = [{CONNECTIONS: " 7 ", RATE: "+3", "listener.name.other.max.connections": "1", "max.connections": "2"}]
    assert own_bounds("PLAINTEXT", layers) == OwnBounds(7, 3)
    assert own_bounds("OTHER", layers) == OwnBounds(1, GREATEST)
    assert own_bounds("THIRD", layers) == OwnBounds(GREATEST, GREATEST)


def test_the_strongest_layer_that_has_the_setting_counts() -> None:
    assert own_bounds("PLAINTEXT", [{RATE: "1"}, {CONNECTIONS: "2"}, {CONNECTIONS: "3", RATE: "4"}]) == OwnBounds(2, 1)


@pytest.mark.parametrize("text", ["0", "-1", "", "many", "1.5", "2147483648", "9" * 5000, "\u0663", "+"])
@pytest.mark.parametrize("name", [CONNECTIONS, RATE])
def test_a_bound_is_a_whole_number_from_one(name: str, text: str) -> None:
    assert list(bounds_problems({name: text})) == [f"{name} is {text!r}, but must be a whole number from 1 to 2147483647."]
    with pytest.raises(ConfigError, match="whole number from 1"):
        BrokerConfig.from_properties({name: text})
    config = BrokerConfig.from_properties({})
    with pytest.raises(ConfigError, match="whole number from 1"):
        config.apply_dynamic({}, {name: text})


def test_the_bounds_of_a_listener_are_no_settings_without_effect() -> None:
    given = {CONNECTIONS: "5", RATE: "6"}
    assert not list(bounds_problems({**given, "max.connections": "0"}))
    assert BrokerConfig.from_properties(given).warnings == ()
