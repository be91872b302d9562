"""What the TLS connections of a listener share."""

from __future__ import annotations

import logging

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.unit.server.serving.tls_pairs import CLIENT, listener
from tidelog.model.errors import ConfigError
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


def test_only_the_first_failures_of_a_second_are_logged_and_all_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    found = listener()
    with caplog.at_level(logging.WARNING):
        for _ in range(TOLD_PER_SECOND + 7):
            found.failed("10.0.0.1", "no reason", 5000)
        found.failed("10.0.0.2", "another", 6000)
    assert found.failures == TOLD_PER_SECOND + 8
    assert caplog.text.count("TLS handshake of 10.0.0.1 failed: no reason") == TOLD_PER_SECOND
    assert "listener OUTSIDE: 7 more TLS handshakes failed" in caplog.text
