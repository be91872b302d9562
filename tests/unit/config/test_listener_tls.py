"""Which TLS setting a listener takes, and what stops a start."""

from __future__ import annotations

import pytest

from tidelog.config.key_store_settings import StoreSettings
from tidelog.config.listener_tls import serving_tls, tls_settings, tls_warnings
from tidelog.config.listeners import EndPoint
from tidelog.model.errors import ConfigError

OWN = "listener.name.outside.ssl."
PEM = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/node.pem"}


def test_the_most_specific_name_decides() -> None:
    found = serving_tls(
        {
            "ssl.keystore.location": "/bare.jks",
            "ssl.keystore.password": "canary",
            f"{OWN}keystore.location": "/own.jks",
            f"{OWN}key.password": "canary2",
            "ssl.truststore.location": "/trust.jks",
            f"{OWN}client.auth": "required",
            "ssl.client.auth": "none",
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.endpoint.identification.algorithm": "",
            "ssl.principal.mapping.rules": "DEFAULT",
            "ssl.allow.dn.changes": "true",
        },
        "OUTSIDE",
        "SSL",
    )
    assert found.keys == StoreSettings(f"{OWN}keystore.location", "/own.jks", "canary", "canary2")
    assert found.trusted == StoreSettings("ssl.truststore.location", "/trust.jks")
    assert (found.client_auth, found.versions, found.verify_hostname) == ("required", ("TLSv1.3",), False)
    assert (found.mapping_rules, found.allow_dn_changes, found.allow_san_changes) == ("DEFAULT", True, False)
    assert "canary" not in repr(found)


def test_only_a_listeners_own_setting_asks_for_certificates_beside_sasl() -> None:
    bare = {**PEM, "ssl.client.auth": "required"}
    assert tls_settings(bare, "OUTSIDE", "SSL").client_auth == "required"
    assert tls_settings(bare, "OUTSIDE", "SASL_SSL").client_auth == "none"
    assert tls_settings({**bare, f"{OWN}client.auth": "requested"}, "OUTSIDE", "SASL_SSL").client_auth == "requested"
    points = [EndPoint("OUTSIDE", "SASL_SSL", "h", 1), EndPoint("INSIDE", "SSL", "h", 2)]
    protocols = {"OUTSIDE": "SASL_SSL", "INSIDE": "SSL"}
    (warning,) = tls_warnings(bare, points, protocols)
    assert f"Set {OWN}client.auth" in warning
    assert not tls_warnings({**bare, f"{OWN}client.auth": "none"}, points, protocols)


def test_settings_of_tls_without_a_listener_that_speaks_it_are_named() -> None:
    points = [EndPoint("OUTSIDE", "PLAINTEXT", "h", 1)]
    given = {**PEM, f"{OWN}client.auth": "required", "ssl.protocol": "TLS", "controller.listener.names": "C"}
    found = tls_warnings(given, points, {"OUTSIDE": "PLAINTEXT"})
    assert len(found) == 3
    assert found[-1] == f"{OWN}client.auth has no effect: listener OUTSIDE speaks PLAINTEXT."


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, f"has no certificate. Set {OWN}keystore.location"),
        ({**PEM, "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "holds TLSv1.1, which is not served"),
        ({**PEM, "ssl.cipher.suites": "RC4"}, "ssl.cipher.suites holds RC4"),
        ({**PEM, "ssl.endpoint.identification.algorithm": "LDAPS"}, "must be https, or empty"),
        ({**PEM, f"{OWN}ssl.x": "1", f"{OWN}engine.factory.class": "a.B"}, f"{OWN}engine.factory.class names a Java class"),
        ({**PEM, f"{OWN}client.auth": "maybe"}, f"{OWN}client.auth is 'maybe'"),
    ],
)
def test_what_stops_a_start_says_what_to_change(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        serving_tls(given, "OUTSIDE", "SSL")
    assert problem in str(refused.value)
    assert "canary" not in str(refused.value)
