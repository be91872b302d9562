"""Which setting a listener takes, and what stops a start."""

from __future__ import annotations

import pytest

from tidelog.config.jaas import KERBEROS_MODULE, PLAIN_MODULE, SCRAM_MODULE
from tidelog.config.listener_oauth import HANDLER, LOGIN_HANDLER, LOGIN_HANDLERS, UNSECURED, VALIDATOR
from tidelog.config.listener_sasl import sasl_settings
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

PLAIN_USERS = f'{PLAIN_MODULE} required user_alice="canary";'
PLAIN_KEY = "listener.name.outside.plain.sasl.jaas.config"
GSSAPI_KEY = "listener.name.outside.gssapi.sasl.jaas.config"
MECHANISMS = "listener.name.outside.sasl.enabled.mechanisms"


def test_the_most_specific_name_decides() -> None:
    found = sasl_settings(
        {
            "sasl.enabled.mechanisms": "GSSAPI",
            MECHANISMS: "PLAIN,SCRAM-SHA-512",
            PLAIN_KEY: PLAIN_USERS,
            "connections.max.reauth.ms": "1000",
            "listener.name.outside.connections.max.reauth.ms": "2000",
            "listener.name.outside.plain.connections.max.reauth.ms": "3000",
            "listener.name.inside.sasl.server.max.receive.size": "7",
        },
        "OUTSIDE",
    )
    assert list(found.mechanisms) == ["PLAIN", "SCRAM-SHA-512"]
    plain, scram = found.mechanisms.values()
    assert plain.jaas is not None
    assert plain.jaas.users == {"alice": "canary"}
    assert (plain.max_reauth_ms, scram.max_reauth_ms) == (3000, 2000)
    assert scram.jaas is None
    assert (found.max_receive_bytes, found.failed_delay_ms) == (524288, 100)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {},
            "offers GSSAPI (Kerberos), because sasl.enabled.mechanisms is not set, but names no keytab. Set listener.name.",
        ),
        ({}, "Without Kerberos, set listener.name.outside.sasl.enabled.mechanisms=SCRAM-SHA-512 or another one of PLAIN, "),
        ({MECHANISMS: "GSSAPI"}, "offers GSSAPI (Kerberos), but names no keytab"),
        ({MECHANISMS: "DIGEST-MD5"}, "offers DIGEST-MD5 (sasl.enabled.mechanisms), which is not served; PLAIN, "),
        ({MECHANISMS: "GSSAPI", GSSAPI_KEY: PLAIN_USERS}, f"GSSAPI needs {KERBEROS_MODULE}"),
        ({MECHANISMS: ""}, "Name at least one"),
        ({MECHANISMS: "PLAIN"}, f"Set {PLAIN_KEY} to"),
        ({MECHANISMS: "PLAIN", "sasl.jaas.config": PLAIN_USERS}, "has no effect on a node without a listener"),
        ({MECHANISMS: "PLAIN", PLAIN_KEY: f"{SCRAM_MODULE} required;"}, f"PLAIN needs {PLAIN_MODULE}"),
        ({MECHANISMS: "PLAIN", PLAIN_KEY: PLAIN_USERS[:-1]}, f"{PLAIN_KEY} ends where"),
        ({MECHANISMS: "PLAIN", PLAIN_KEY: PLAIN_USERS[:-2]}, f"{PLAIN_KEY}: a quote is not closed"),
        ({MECHANISMS: "PLAIN", PLAIN_KEY: PLAIN_USERS, "sasl.login.class": "a.B"}, "sasl.login.class names a Java class"),
        (
            {MECHANISMS: "OAUTHBEARER", "listener.name.outside.oauthbearer.sasl.login.callback.handler.class": "a.B"},
            "oauthbearer.sasl.login.callback.handler.class names a Java class",
        ),
        ({MECHANISMS: "SCRAM-SHA-256", LOGIN_HANDLER: "a.B"}, f"{LOGIN_HANDLER} names a Java class, which cannot be loaded"),
        ({MECHANISMS: "OAUTHBEARER", LOGIN_HANDLER: "a.B"}, f"cannot be loaded; {LOGIN_HANDLERS[0]} is known by its name"),
        (
            {MECHANISMS: "SCRAM-SHA-256", f"listener.name.outside.{LOGIN_HANDLER}": LOGIN_HANDLERS[0]},
            "class of OAUTHBEARER, which listener OUTSIDE does not offer",
        ),
        (
            {MECHANISMS: "SCRAM-SHA-256,OAUTHBEARER", f"listener.name.outside.scram-sha-256.{LOGIN_HANDLER}": LOGIN_HANDLERS[0]},
            "class of OAUTHBEARER, but is a setting of SCRAM-SHA-256",
        ),
        ({MECHANISMS: "SCRAM-SHA-256", "connections.max.idle.ms": "100"}, "must be less than connections.max.idle.ms"),
        ({MECHANISMS: "SCRAM-SHA-256", "listener.name.outside.sasl.server.max.receive.size": "x"}, "listener.name.outside."),
    ],
)
def test_what_stops_a_start_says_what_to_change(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sasl_settings(given, "OUTSIDE")
    assert problem in str(refused.value)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "listener.name.outside."])
def test_classes_of_oauthbearer_in_a_setting_for_all_mechanisms_do_not_stop_the_others(prefix: str) -> None:
    given = {
        MECHANISMS: "SCRAM-SHA-256,OAUTHBEARER,PLAIN",
        PLAIN_KEY: PLAIN_USERS,
        prefix + HANDLER: UNSECURED,
        prefix + LOGIN_HANDLER: LOGIN_HANDLERS[0],
    }
    found = sasl_settings(given, "OUTSIDE")
    assert list(found.mechanisms) == ["SCRAM-SHA-256", "OAUTHBEARER", "PLAIN"]
    assert found.mechanisms["OAUTHBEARER"].oauth is not None


def test_a_class_of_oauthbearer_without_a_prefix_may_be_for_another_listener() -> None:
    assert sasl_settings({MECHANISMS: "SCRAM-SHA-256", LOGIN_HANDLER: LOGIN_HANDLERS[0], HANDLER: VALIDATOR}, "OUTSIDE")


def test_a_source_of_tokens_that_no_login_uses_is_named() -> None:
    url = "sasl.oauthbearer.token.endpoint.url"
    nodes = {
        "process.roles": "broker",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listeners": "NODES://localhost:9092",
        "inter.broker.listener.name": "NODES",
        "listener.security.protocol.map": "NODES:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.nodes.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        url: "https://login.example.com/token",
    }
    (warning,) = BrokerConfig.from_properties(nodes).warnings
    assert warning.startswith(f"{url} has no effect: this node logs in to no other by OAUTHBEARER")
    controllers = {
        "listener.security.protocol.map": "NODES:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "listener.name.controller.sasl.enabled.mechanisms": "OAUTHBEARER",
    }
    assert BrokerConfig.from_properties({**nodes, **controllers}).warnings == ()
    (warning,) = BrokerConfig.from_properties({url: "https://login.example.com/token"}).warnings
    assert warning.startswith(f"{url} has no effect")
