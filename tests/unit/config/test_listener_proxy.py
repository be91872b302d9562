from __future__ import annotations

import ipaddress

import pytest

from tidelog.config.listener_proxy import OPTION, proxy_networks
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

OWN = f"listener.name.outside.{OPTION}"


def test_a_listeners_own_networks_beat_those_of_all() -> None:
    assert proxy_networks({}, "OUTSIDE") == ()
    both = {OPTION: "10.0.0.0/24, 2001:db8::/48", OWN: "192.0.2.5"}
    assert proxy_networks(both, "OUTSIDE") == (ipaddress.ip_network("192.0.2.5/32"),)
    assert proxy_networks(both, "INSIDE") == (ipaddress.ip_network("10.0.0.0/24"), ipaddress.ip_network("2001:db8::/48"))
    assert proxy_networks({**both, OWN: ""}, "OUTSIDE") == (), "a listener without balancers"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("balancer.example", "must hold addresses or networks"),
        ("10.0.0.1/24", "has host bits set"),
        ("10.0.0.0/33", "must hold"),
        ("0.0.0.0/0", "List the balancers"),
        ("::/0", "List the balancers"),
    ],
)
def test_a_node_does_not_start_with_what_is_no_network(text: str, problem: str) -> None:
    for name in (OPTION, OWN):
        given = {
            "listeners": "OUTSIDE://localhost:0",
            "listener.security.protocol.map": "OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "OUTSIDE",
            name: text,
        }
        with pytest.raises(ConfigError, match=problem) as refused:
            BrokerConfig.from_properties(given)
        assert name in str(refused.value)
