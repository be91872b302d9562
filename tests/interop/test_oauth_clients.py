"""Clients of four libraries log in to a tidelog node with tokens, signed and unsigned."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.net.sasl.oauth
import pytest
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running

pytestmark = pytest.mark.interop

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{PACKAGE}.OAuthBearerLoginModule"
LIMIT_S = 30
LIFE_S = 6
KEY = RSAKey.generate_key(2048, {"kid": "one"})
IMPOSTOR = ECKey.generate_key("P-256", {"kid": "one"})


def token(life_s: float = 3600, key: Any = KEY, algorithm: str = "RS256", **changes: Any) -> str:
    now = time.time()
    claims = {"sub": "me", "iat": now, "exp": now + life_s, "iss": "https://issuer", "aud": "tidelog", **changes}
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


def librdkafka(bootstrap: str, make: Any, **settings: Any) -> confluent_kafka.Producer:
    def oauth(_: str) -> tuple[str, float]:
        text, end = make()
        return text, end

    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": oauth,
            **settings,
        }
    )


def test_librdkafka_logs_in(tokens: Tokens) -> None:
    producer = librdkafka(tokens.signed, lambda: (token(), time.time() + 3600))
    told: list[Any] = []
    producer.produce("librdkafka", b"v", on_delivery=lambda error, message: told.append((error, message.offset())))
    assert producer.flush(LIMIT_S) == 0
    assert told == [(None, 0)]


def test_librdkafka_gets_new_tokens_under_load_without_an_error(tokens: Tokens) -> None:
    """Over three lives of a token: nothing is refused, lost or sent over a new connection because of it."""
    errors: list[Any] = []
    delivered: list[int] = []
    made: list[float] = []

    def make() -> tuple[str, float]:
        made.append(time.time())
        return token(LIFE_S), time.time() + LIFE_S

    def report(error: Any, message: Any) -> None:
        errors.append(error) if error is not None else delivered.append(message.offset())

    tokens.node.create("again", 1)
    producer = librdkafka(tokens.signed, make, error_cb=errors.append)
    end = time.monotonic() + 3.5 * LIFE_S
    count = 0
    while time.monotonic() < end:
        producer.produce("again", b"%d" % count, partition=0, on_delivery=report)
        producer.poll(0.02)
        count += 1
    assert producer.flush(LIMIT_S) == 0
    assert errors == []
    assert delivered == list(range(count))
    assert len(made) >= 3
    assert "did not authenticate again" not in tokens.node.log_file.read_text()


class AioTokens(aiokafka.abc.AbstractTokenProvider):
    async def token(self) -> str:
        return token()


def test_aiokafka_logs_in(tokens: Tokens) -> None:
    async def main() -> int:
        settings: dict[str, Any] = {
            "bootstrap_servers": tokens.signed,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": AioTokens(),
        }
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            return int((await producer.send_and_wait("aiokafka", b"v")).offset)

    assert asyncio.run(asyncio.wait_for(main(), LIMIT_S)) == 0


class PythonTokens(kafka.net.sasl.oauth.AbstractTokenProvider):
    def token(self) -> str:
        return token()


def test_kafka_python_logs_in(tokens: Tokens) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=tokens.signed,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=PythonTokens(),
    )
    assert producer.send("kafka-python", b"v").get(LIMIT_S).offset == 0
    producer.close()


RECORDS = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]


def java_settings(**changes: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "max.block.ms": "20000", **changes}


@pytest.fixture
def reading_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[JavaSide, Path]]:
    """A JVM that may read a token from a file."""
    place = tmp_path / "token"
    allowed = {"urls": f"{place.as_uri()},file:{place}", "files": str(place)}
    flags = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.{what}={value}" for what, value in allowed.items()]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(flags))
    side = JavaSide(tmp_path / "java.log")
    yield side, place
    side.close()


def from_file(place: Path) -> dict[str, str]:
    return java_settings(
        **{
            "sasl.jaas.config": f"{MODULE} required;",
            "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.FileJwtRetriever",
            "sasl.oauthbearer.token.endpoint.url": place.as_uri(),
        }
    )


def test_javas_clients_log_in(tokens: Tokens, reading_tokens: tuple[JavaSide, Path]) -> None:
    side, place = reading_tokens
    place.write_text(token(sub="me", scope="kafka"))
    tokens.node.create("java", 1)
    answer = side.ask("produce", bootstrap=tokens.signed, topic="java", config=from_file(place), records=RECORDS)
    assert answer["offsets"] == [0]


def test_a_token_of_another_signer_is_an_authentication_error(tokens: Tokens, reading_tokens: tuple[JavaSide, Path]) -> None:
    side, place = reading_tokens
    place.write_text(token(key=IMPOSTOR, algorithm="ES256", scope="kafka"))
    with pytest.raises(JavaFailed, match=r"SaslAuthenticationException.*invalid_token"):
        side.ask("produce", bootstrap=tokens.signed, topic="never", config=from_file(place), records=RECORDS)
    for bad in (token(key=IMPOSTOR, algorithm="ES256"), token(aud="else"), token(iss="else")):
        errors: list[Any] = []
        producer = librdkafka(tokens.signed, lambda bad=bad: (bad, time.time() + 60), error_cb=errors.append)
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
