"""The security of the HTTP listener: what its settings mean, and which of them do not stand alone."""

from __future__ import annotations

import pytest

from tidelog.config.http_endpoint import endpoint_security
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

STORE = {"tidelog.http.ssl.keystore.location": "/k"}
OPEN = {"tidelog.http.listener": "0.0.0.0:9644"}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def test_without_settings_the_endpoint_is_open_and_plain() -> None:
    assert endpoint_security(BrokerConfig.from_properties({})) == (None, None, None, ("User", "ANONYMOUS"))


def test_stores_passwords_and_files_are_those_of_the_settings() -> None:
    found = endpoint_security(
        BrokerConfig.from_properties(
            {
                **STORE,
                "tidelog.http.ssl.keystore.password": "a",
                "tidelog.http.ssl.key.password": "b",
                "tidelog.http.ssl.truststore.location": "/t",
                "tidelog.http.ssl.truststore.password": "c",
                "tidelog.http.ssl.client.auth": "required",
                "tidelog.http.bearer.token.file": "/token",
                "tidelog.http.basic.credentials.file": "/users",
            }
        )
    )
    assert (found.token_file, found.user_file) == ("/token", "/users")
    assert found.tls is not None
    assert found.tls.keys is not None
    assert found.tls.trusted is not None
    assert (found.tls.keys.location, found.tls.keys.password, found.tls.keys.key_password) == ("/k", "a", "b")
    assert (found.tls.trusted.location, found.tls.trusted.password) == ("/t", "c")
    assert found.tls.client_auth == "required"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tidelog.http.ssl.client.auth": "required"}, "client.auth is set, but tidelog.http.ssl.keystore.location is not"),
        ({"tidelog.http.ssl.truststore.location": "/t"}, "truststore.location is set, but"),
        ({**STORE, "tidelog.http.ssl.client.auth": "required"}, "client.auth is required, but .*truststore.location is not set"),
        ({**STORE, "tidelog.http.ssl.client.auth": "maybe"}, "must be one of"),
        ({"tidelog.http.ssl.keystore.locatoin": "/k"}, "Did you mean tidelog.http.ssl.keystore.location"),
    ],
)
def test_a_setting_that_would_not_be_enforced_stops_the_start(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        BrokerConfig.from_properties(given)


def test_a_secured_node_with_open_metrics_warns() -> None:
    (warning,) = BrokerConfig.from_properties({**OPEN, **AUTHORIZER}).warnings
    assert "0.0.0.0:9644, where everyone can read the metrics" in warning
    token = {"tidelog.http.bearer.token.file": "/token"}
    (warning,) = BrokerConfig.from_properties({**OPEN, **AUTHORIZER, **token}).warnings
    assert "in clear" in warning


@pytest.mark.parametrize(
    "given",
    [
        OPEN,
        AUTHORIZER,
        {**AUTHORIZER, "tidelog.http.listener": ""},
        {**AUTHORIZER, "tidelog.http.listener": "localhost:9644"},
        {**AUTHORIZER, "tidelog.http.listener": "[::1]:9644"},
        {**AUTHORIZER, **OPEN, **STORE, "tidelog.http.bearer.token.file": "/token"},
    ],
)
def test_other_nodes_do_not(given: dict[str, str]) -> None:
    assert BrokerConfig.from_properties(given).warnings == ()


def test_the_principal_of_tokens_has_a_type_and_a_name() -> None:
    settings = BrokerConfig.from_properties({"tidelog.http.bearer.token.principal": "User:a:b"})
    assert endpoint_security(settings).token_principal == ("User", "a:b")
    with pytest.raises(ConfigError, match="it must be a principal such as User:console"):
        endpoint_security(BrokerConfig.from_properties({"tidelog.http.bearer.token.principal": "console"}))
