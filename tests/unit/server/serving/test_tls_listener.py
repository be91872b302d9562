"""What the TLS connections of a listener share."""

from __future__ import annotations

import logging

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.unit.server.serving.tls_pairs import AUTHORITY, CLIENT, given, listener
from tidelog.broker.request import Session
from tidelog.config.listener_tls import GROUPS_FROM_OU, tls_settings
from tidelog.model.errors import ConfigError
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.principal_mapping import NoRuleMatches
from tidelog.server.serving.tls_listener import TlsListener
from tidelog.server.serving.tls_replacing import load
from tidelog.server.serving.violations import TOLD_PER_SECOND

DER = CLIENT.certificate.public_bytes(Encoding.DER)


def test_a_certificate_names_a_user_by_the_rules() -> None:
    assert listener().principal_of(DER) == KafkaPrincipal("User", "CN=me")
    assert listener(principal_mapping_rules="RULE:^CN=(.*)$/$1-user/").principal_of(DER).name == "me-user"
    with pytest.raises(NoRuleMatches):
        listener(principal_mapping_rules="RULE:^OU=(.*)$/$1/").principal_of(DER)
    with pytest.raises(ConfigError, match="a rule begins with RULE"):
        listener(principal_mapping_rules="CN=me")


class Audit:
    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def logged_in(self, session: Session, mechanism: str, again: bool) -> None:
        self.told.append(("in", str(session.principal), session.peer_host, session.listener, mechanism))

    def login_failed(self, listener: str, host: str, mechanism: str, reason: str) -> None:
        self.told.append(("failed", reason, host, listener, mechanism))


def test_a_login_by_certificate_and_a_failed_handshake_are_audited() -> None:
    found = listener()
    found.entered(Session("OUTSIDE", "10.0.0.1", KafkaPrincipal("User", "CN=me")))
    found.failed("10.0.0.1", "no reason", 5000)
    audit = found.audit = Audit()
    found.entered(Session("OUTSIDE", "10.0.0.1", KafkaPrincipal("User", "CN=me")))
    found.entered(Session("OUTSIDE", "10.0.0.1"))
    found.failed("10.0.0.2", "no reason", 5000)
    assert audit.told == [
        ("in", "User:CN=me", "10.0.0.1", "OUTSIDE", "SSL"),
        ("failed", "no reason", "10.0.0.2", "OUTSIDE", "SSL"),
    ]


def of_units(*units: str) -> bytes:
    parts = [(NameOID.ORGANIZATIONAL_UNIT_NAME, unit) for unit in units] + [(NameOID.COMMON_NAME, "me")]
    name = x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
    return AUTHORITY.issue(name).certificate.public_bytes(Encoding.DER)


def test_the_units_of_a_certificate_are_groups_where_the_setting_says_so() -> None:
    def made(protocol: str, value: str) -> TlsListener:
        return TlsListener(load(tls_settings({**given(), GROUPS_FROM_OU: value}, "OUTSIDE", protocol))[0])

    der = of_units("staff", "on call")
    with_units = made("SSL", "true").principal_of(der)
    assert (with_units, with_units.groups) == (
        KafkaPrincipal("User", "CN=me,OU=on call,OU=staff"),
        {"Group:staff", "Group:on call"},
    )
    assert not made("SSL", "false").principal_of(der).groups
    assert not made("SASL_SSL", "true").principal_of(der).groups, "the login says who the client is"
    assert not made("SSL", "true").principal_of(DER).groups
    with pytest.raises(ValueError, match="not the name of a group"):
        made("SSL", "true").principal_of(of_units("*"))


def test_only_the_first_failures_of_a_second_are_logged_and_all_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    found = listener()
    with caplog.at_level(logging.WARNING):
        for _ in range(TOLD_PER_SECOND + 7):
            found.failed("10.0.0.1", "no reason", 5000)
        found.failed("10.0.0.2", "another", 6000)
    assert found.failures == TOLD_PER_SECOND + 8
    assert caplog.text.count("TLS handshake of 10.0.0.1 failed: no reason") == TOLD_PER_SECOND
    assert "listener OUTSIDE: 7 more TLS handshakes failed" in caplog.text
