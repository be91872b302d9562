"""Where a node gets its tokens, by the settings of a listener."""

from __future__ import annotations

import pytest

from tidelog.client.oauth import CLIENT_ID, CLIENT_SECRET, HANDLER, RETRIEVER, SCOPE, URL, OAuth
from tidelog.client.settings import Tls
from tidelog.config.jaas import OAUTHBEARER_MODULE, PLAIN_MODULE
from tidelog.model.errors import ConfigError
from tidelog.server.cluster.token_source import Renewal, renewal, token_source

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
ENDPOINT = {URL: "https://login.example.com/token", CLIENT_ID: "node", CLIENT_SECRET: "canary"}
JAAS = "listener.name.nodes.oauthbearer.sasl.jaas.config"


def test_tokens_come_from_the_endpoint_of_the_settings() -> None:
    found = token_source(ENDPOINT, "NODES")
    assert found.oauth == OAuth(url=ENDPOINT[URL], client_id="node", client_secret="canary")
    assert found.renewal == Renewal(share=0.8, jitter=0.05, least_s=60.0, buffer_s=300.0)
    assert (found.tls, found.connect_s, found.read_s, found.retry_ms, found.max_retry_ms) == (None, None, None, 100, 10_000)


def test_when_tokens_are_replaced_is_found_without_the_rest() -> None:
    window = "sasl.login.refresh.window.factor"
    assert renewal({window: "0.5", f"listener.name.nodes.oauthbearer.{window}": "0.9"}, "NODES").share == 0.9
    assert renewal({}, "NODES") == token_source(ENDPOINT, "NODES").renewal
    with pytest.raises(ConfigError, match=r"from 0\.5 to 1\.0"):
        renewal({window: "0.1"}, "NODES")


def test_the_most_specific_name_decides() -> None:
    found = token_source(
        {
            **ENDPOINT,
            SCOPE: "bare",
            f"listener.name.nodes.{CLIENT_ID}": "of the listener",
            f"listener.name.nodes.{SCOPE}": "of the listener",
            f"listener.name.nodes.oauthbearer.{SCOPE}": "of both",
            "listener.name.nodes.oauthbearer.sasl.login.connect.timeout.ms": "1500",
            "listener.name.others.sasl.login.read.timeout.ms": "1",
            "sasl.login.retry.backoff.ms": "7",
            "sasl.login.refresh.window.factor": "0.5",
        },
        "NODES",
    )
    assert (found.oauth.client_id, found.oauth.scope) == ("of the listener", "of both")
    assert (found.connect_s, found.read_s, found.retry_ms, found.renewal.share) == (1.5, None, 7, 0.5)


def test_the_identity_and_the_authorities_may_stand_in_the_login_module() -> None:
    module = (
        f'{OAUTHBEARER_MODULE} required clientId="n" clientSecret="s" scope="kafka" unsecuredValidatorRequiredScope="x" '
        'ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem";'
    )
    found = token_source({URL: ENDPOINT[URL], JAAS: module}, "NODES")
    assert found.oauth == OAuth(url=ENDPOINT[URL], client_id="n", client_secret="s", scope="kafka")
    assert found.tls == Tls(ca_file="/ca.pem")


def test_a_file_holds_the_token() -> None:
    names = {
        HANDLER: PACKAGE + "OAuthBearerLoginCallbackHandler",
        RETRIEVER: PACKAGE + "FileJwtRetriever",
        "sasl.oauthbearer.jwt.validator.class": PACKAGE + "DefaultJwtValidator",
    }
    assert token_source({URL: "file:///run/token", **names}, "NODES").oauth == OAuth(file="/run/token")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url"),
        ({URL: ENDPOINT[URL]}, "it needs sasl.oauthbearer.client.credentials.client.id"),
        (ENDPOINT | {RETRIEVER: PACKAGE + "JwtBearerJwtRetriever"}, "must be one of"),
        (ENDPOINT | {f"listener.name.nodes.oauthbearer.{HANDLER}": "com.example.Mine"}, "names a Java class"),
        (ENDPOINT | {"sasl.login.class": "com.example.Mine"}, "sasl.login.class has no meaning for a node"),
        (ENDPOINT | {"sasl.oauthbearer.assertion.file": "/a"}, "sasl.oauthbearer.assertion.file has no meaning"),
        (
            ENDPOINT | {"listener.name.nodes.sasl.oauthbearer.header.urlencode": "true"},
            "listener.name.nodes.sasl.oauthbearer.header.urlencode has no meaning",
        ),
        (ENDPOINT | {"sasl.oauthbearer.jwt.validator.class": "com.example.Mine"}, "jwt.validator.class has no meaning"),
        (ENDPOINT | {"sasl.login.refresh.window.factor": "0.4"}, "is 0.4, but must be from 0.5 to 1.0"),
        (ENDPOINT | {"sasl.login.refresh.window.jitter": "0.3"}, "must be from 0.0 to 0.25"),
        (ENDPOINT | {"sasl.login.refresh.buffer.seconds": "-1"}, "is -1, but must be from 0 to 3600"),
        (ENDPOINT | {JAAS: f'{PLAIN_MODULE} required username="n";'}, f"but OAUTHBEARER needs {OAUTHBEARER_MODULE}"),
        (
            ENDPOINT | {JAAS: f'{OAUTHBEARER_MODULE} required unsecuredLoginStringClaim_sub="me";'},
            "the option unsecuredLoginStringClaim_sub, which has no meaning for a node",
        ),
        (ENDPOINT | {JAAS: f'{OAUTHBEARER_MODULE} required ssl.colour="canary";'}, "'ssl.colour' is not known"),
    ],
)
def test_a_setting_that_is_missing_or_not_honoured_stops_the_start(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        token_source(given, "NODES")
    assert str(refused.value).startswith("this node cannot log in on listener NODES by OAUTHBEARER: ")
    assert said in str(refused.value)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("life_s", "spread", "used_s"),
    [(10_000, 0.0, 8000), (10_000, 1.0, 8500), (1000, 0.0, 700), (361, 0.0, 61), (360, 0.0, 288), (10, 1.0, 8.5)],
)
def test_a_token_is_replaced_as_in_java(life_s: float, spread: float, used_s: float) -> None:
    assert Renewal(0.8, 0.05, 60.0, 300.0).after_s(life_s, spread) == pytest.approx(used_s)


def test_a_token_is_never_used_longer_than_it_holds() -> None:
    assert Renewal(1.0, 0.25, 0.0, 0.0).after_s(100, 1.0) == 100
