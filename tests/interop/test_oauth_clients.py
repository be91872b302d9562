"""Tokens that a tidelog node refuses, and tokens without a signature. ``test_secured_clients`` has the logins that succeed."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running

pytestmark = pytest.mark.interop

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{PACKAGE}.OAuthBearerLoginModule"
LIMIT_S = 30
KEY = RSAKey.generate_key(2048, {"kid": "one"})
IMPOSTOR = ECKey.generate_key("P-256", {"kid": "one"})


def token(key: Any = KEY, algorithm: str = "RS256", **changes: Any) -> str:
    now = time.time()
    claims = {"sub": "me", "iat": now, "exp": now + 3600, "iss": "https://issuer", "aud": "tidelog", **changes}
    return jws.serialize_compact({"alg": algorithm, "kid": "one"}, json.dumps(claims), key, algorithms=[algorithm])


class Tokens:
    """A node with a listener for signed tokens and one for tokens without a signature."""

    def __init__(self, node: Node, ports: list[int]) -> None:
        self.node = node
        self.signed, self.open = (f"127.0.0.1:{port}" for port in ports)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Tokens]:
    place = tmp_path_factory.mktemp("tokens")
    keys = place / "keys.json"
    keys.write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
    ports = free_ports(4)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", "SIGNED", "OPEN"), ports, strict=True))
    handler = "oauthbearer.sasl.server.callback.handler.class"
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SIGNED:SASL_PLAINTEXT,OPEN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"listener.name.signed.{handler}": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
        f"listener.name.open.{handler}": f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.expected.audience": "tidelog",
    }
    node = Node("tidelog", place / "data", java, properties, ports=ports[:2])
    with running(node) as started:
        yield Tokens(started, ports[2:])


def librdkafka(bootstrap: str, bearer: str, **settings: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (bearer, time.time() + 60),
            **settings,
        }
    )


RECORDS = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]


def java_settings(**changes: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "max.block.ms": "20000", **changes}


def from_file(place: Path) -> dict[str, str]:
    return java_settings(
        **{
            "sasl.jaas.config": f"{MODULE} required;",
            "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.FileJwtRetriever",
            "sasl.oauthbearer.token.endpoint.url": place.as_uri(),
        }
    )


def test_a_token_of_another_signer_is_an_authentication_error(tokens: Tokens, java: JavaSide, tmp_path: Path) -> None:
    place = tmp_path / "token"
    java.ask("property", name="org.apache.kafka.sasl.oauthbearer.allowed.urls", value=f"{place.as_uri()},file:{place}")
    java.ask("property", name="org.apache.kafka.sasl.oauthbearer.allowed.files", value=str(place))
    place.write_text(token(key=IMPOSTOR, algorithm="ES256", scope="kafka"))
    with pytest.raises(JavaFailed, match=r"SaslAuthenticationException.*invalid_token"):
        java.ask("produce", bootstrap=tokens.signed, topic="never", config=from_file(place), records=RECORDS)
    for bad in (token(key=IMPOSTOR, algorithm="ES256"), token(aud="else"), token(iss="else")):
        errors: list[Any] = []
        producer = librdkafka(tokens.signed, bad, error_cb=errors.append)
        deadline = time.monotonic() + LIMIT_S
        while not errors:
            producer.poll(0.1)
            assert time.monotonic() < deadline, "librdkafka reports no error"
        assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION
    assert "the token is for another audience" in tokens.node.log_file.read_text()


def test_javas_unsigned_tokens_open_only_the_listener_that_asks_for_them(tokens: Tokens, java: JavaSide) -> None:
    config = java_settings(**{"sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="me";'})
    tokens.node.create("unsigned", 1)
    assert java.ask("produce", bootstrap=tokens.open, topic="unsigned", config=config, records=RECORDS)["offsets"] == [0]
    with pytest.raises(JavaFailed, match="SaslAuthenticationException"):
        java.ask("produce", bootstrap=tokens.signed, topic="unsigned", config=config, records=RECORDS)
    header = urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    assert header not in tokens.node.log_file.read_text()
