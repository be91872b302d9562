"""Forms of listeners, and what cannot stand together."""

from __future__ import annotations

import pytest

from tidelog.config.broker_security import SERVED_PROTOCOLS
from tidelog.config.listeners import (
    EndPoint,
    check_advertised,
    check_listeners,
    parse_address,
    parse_endpoints,
    parse_protocol_map,
)
from tidelog.model.errors import ConfigError

MAP = {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "INSIDE": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://:9092", "", 9092),
        ("PLAINTEXT://localhost:0", "localhost", 0),
        ("plaintext://0.0.0.0:65535", "0.0.0.0", 65535),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("PLAINTEXT://broker-1.example.org:9092", "broker-1.example.org", 9092),
    ],
)
def test_an_end_point_is_name_host_and_port(text: str, host: str, port: int) -> None:
    (point,) = parse_endpoints("listeners", [text], MAP)
    assert point == EndPoint("PLAINTEXT", "PLAINTEXT", host, port)
    assert parse_endpoints("listeners", [str(point)], MAP) == (point,)


@pytest.mark.parametrize(
    "text",
    ["localhost:9092", "PLAINTEXT://", "PLAINTEXT://:x", "PLAINTEXT://:65536", "PLAINTEXT://::1:9092", "://:1", "A B://:1"],
)
def test_another_form_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(ConfigError, match="NAME://host:port"):
        parse_endpoints("listeners", [text], MAP)


def test_a_name_outside_the_map_is_refused_with_what_to_add() -> None:
    with pytest.raises(ConfigError, match="Add OUTSIDE:PLAINTEXT"):
        parse_endpoints("listeners", ["OUTSIDE://:1"], MAP)


def test_a_name_stands_for_one_listener() -> None:
    with pytest.raises(ConfigError, match="names a listener twice"):
        parse_endpoints("listeners", ["INSIDE://:1", "inside://:2"], MAP)


def test_two_listeners_may_share_a_port_only_as_ipv4_and_ipv6() -> None:
    def problems(*items: str) -> list[str]:
        return check_listeners(parse_endpoints("listeners", items, MAP), SERVED_PROTOCOLS)

    assert not problems("PLAINTEXT://127.0.0.1:9092", "INSIDE://[::1]:9092")
    assert not problems("PLAINTEXT://127.0.0.1:0", "INSIDE://127.0.0.1:0")
    assert "same port" in problems("PLAINTEXT://127.0.0.1:9092", "INSIDE://127.0.0.2:9092")[0]
    assert "same port" in problems("PLAINTEXT://:9092", "INSIDE://[::1]:9092")[0]


def test_a_listener_with_a_protocol_that_is_not_served_is_a_problem() -> None:
    (problem,) = check_listeners(parse_endpoints("listeners", ["SSL://:9093"], MAP), SERVED_PROTOCOLS - {"SSL"})
    assert "SSL://:9093 speaks SSL, which is not served yet" in problem


def test_every_interface_is_no_address_for_clients() -> None:
    points = parse_endpoints("advertised.listeners", ["PLAINTEXT://0.0.0.0:9092", "INSIDE://[::]:1"], MAP)
    assert len(check_advertised(points)) == 2


def test_the_protocol_map_gives_each_name_one_protocol() -> None:
    assert parse_protocol_map("m", "a:PLAINTEXT, B:ssl,") == {"A": "PLAINTEXT", "B": "SSL"}
    for text in ("A", "A:TLS", ":SSL"):
        with pytest.raises(ConfigError, match="NAME:PROTOCOL"):
            parse_protocol_map("m", text)
    with pytest.raises(ConfigError, match="two protocols"):
        parse_protocol_map("m", "A:SSL,a:PLAINTEXT")


def test_an_address_has_a_port_and_brackets_for_ipv6() -> None:
    assert parse_address("o", "127.0.0.1:80") == ("127.0.0.1", 80)
    assert parse_address("o", ":0") == ("", 0)
    assert parse_address("o", "[::1]:9") == ("::1", 9)
    with pytest.raises(ConfigError, match="host:port"):
        parse_address("o", "localhost")
