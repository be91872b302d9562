"""What the TLS connections of a listener share."""

from __future__ import annotations

import logging

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.unit.server.serving.tls_pairs import CLIENT, listener
from tidelog.broker.request import Session
from tidelog.model.errors import ConfigError
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.principal_mapping import NoRuleMatches
from tidelog.server.serving.violations import TOLD_PER_SECOND

DER = CLIENT.certificate.public_bytes(Encoding.DER)


def test_a_certificate_names_a_user_by_the_rules() -> None:
    assert listener().user_of(DER) == "CN=me"
    assert listener(principal_mapping_rules="RULE:^CN=(.*)$/$1-user/").user_of(DER) == "me-user"
    with pytest.raises(NoRuleMatches):
        listener(principal_mapping_rules="RULE:^OU=(.*)$/$1/").user_of(DER)
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


def test_only_the_first_failures_of_a_second_are_logged_and_all_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    found = listener()
    with caplog.at_level(logging.WARNING):
        for _ in range(TOLD_PER_SECOND + 7):
            found.failed("10.0.0.1", "no reason", 5000)
        found.failed("10.0.0.2", "another", 6000)
    assert found.failures == TOLD_PER_SECOND + 8
    assert caplog.text.count("TLS handshake of 10.0.0.1 failed: no reason") == TOLD_PER_SECOND
    assert "listener OUTSIDE: 7 more TLS handshakes failed" in caplog.text
