"""The settings of secured nodes: what every listener asks for, and where it is."""

from __future__ import annotations

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure.node_settings import SecuredNode, plan_nodes, settings_of
from tidelog.config.authorizer import authorizer_settings
from tidelog.config.listener_tls import tls_settings
from tidelog.config.resolve import BrokerConfig

IDS = [f"id-{number}" for number in range(5)]


def planned(count: int, *hosts: str, port: int = 9092) -> tuple[SecuredNode, ...]:
    return plan_nodes(count, hosts or ("localhost",), port, IDS)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_no_listener_is_in_plain_text_and_none_between_nodes_is_without_certificates(count: int) -> None:
    nodes = planned(count)
    for node in nodes:
        given = settings_of(node, nodes, "admin", "/nodes")
        config = BrokerConfig.from_properties(given)
        names = {point.listener: point.protocol for point in (*config.endpoints, *config.controller_endpoints)}
        assert names == {"CLIENTS": "SASL_SSL", "NODES": "SSL"} | ({"CONTROLLER": "SSL"} if node.voter else {})
        assert [tls_settings(given, name, "SSL").client_auth for name in ("NODES", "CONTROLLER")] == ["required"] * 2
        assert all(tls_settings(given, name, "SSL").verify_hostname for name in names)
        assert not config.warnings


def test_nodes_and_the_administrator_are_super_users_and_nobody_else() -> None:
    nodes = planned(3)
    found = authorizer_settings(settings_of(nodes[0], nodes, "root", "/nodes"))
    assert found is not None
    assert found.super_users == (("User", "CN=node-1"), ("User", "CN=node-2"), ("User", "CN=node-3"), ("User", "root"))
    assert not found.allow_without_acl


def test_nodes_of_one_machine_have_ports_of_their_own() -> None:
    nodes = planned(5)
    ports = [part.rpartition(":")[2] for node in nodes for part in settings_of(node, nodes, "a", "/")["listeners"].split(",")]
    assert len(set(ports)) == len(ports) == 13
    assert [node.voter for node in nodes] == [True, True, True, False, False]


def test_nodes_of_several_machines_have_the_same_ports_and_names_of_their_own() -> None:
    nodes = planned(3, "a.example.com,10.0.0.1", "b.example.com", "::1")
    assert [node.names for node in nodes] == [("a.example.com", "10.0.0.1"), ("b.example.com",), ("::1",)]
    assert [node.address for node in nodes] == ["a.example.com:9092", "b.example.com:9092", "[::1]:9092"]
    voters = settings_of(nodes[1], nodes, "a", "/")["controller.quorum.bootstrap.servers"]
    assert voters == "a.example.com:10092,b.example.com:10092,[::1]:10092"


def test_localhost_is_its_address_too() -> None:
    assert planned(1)[0].names == ("localhost", "127.0.0.1")


@pytest.mark.parametrize(
    ("count", "hosts", "port", "reason"),
    [
        (3, ("a", "b"), 9092, "--host is given 2 times for 3 nodes"),
        (1, (" , ",), 9092, "--host is empty"),
        (3, ("localhost",), 62_534, "leaves no room"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(count: int, hosts: tuple[str, ...], port: int, reason: str) -> None:
    with pytest.raises(CommandFailed, match=reason):
        plan_nodes(count, hosts, port, IDS)
