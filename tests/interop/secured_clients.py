"""Clients of other people against a secured node: the settings of each, a round trip, and a load under short sessions."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.net.sasl.oauth

from tests.interop.java import JavaSide, as_bytes, as_text
from tests.interop.secured_node import JAAS, KINDS, LIMIT_S, SASL, TOKEN, SecuredNode, bearer
from tidelog.client import AdminClient
from tools.jars import JarsMissing, cache

FRANZ = Path(__file__).with_name("franz")
MAX_REQUEST_BYTES = 2_000_000
WITHOUT_TOKEN = tuple(kind for kind in KINDS if kind != TOKEN)
PAUSE_S = 0.01
"""Between two records of a load."""
MORE_THAN_WRITTEN = 1_000_000
SHORT_LIFE_S = 60
"""A bearer token with a life up to this ends sessions by itself."""


class SecuredClient(Protocol):
    """One client library. ``kinds``: what it can do, of ``KINDS``."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]

    def round_trip(self, at: SecuredNode, kind: str, version: str, topic: str, values: Sequence[bytes]) -> list[bytes]:
        """Writes the values to the empty topic, and reads it."""
        ...


class Writer(Protocol):
    """A client that logs in again on its connection when the session ends."""

    def write(self, at: SecuredNode, kind: str, version: str, topic: str, seconds: float) -> list[int]:
        """The offsets of records written one after the other for some seconds, where sessions are short."""
        ...


def _protocol(kind: str) -> str:
    return "SSL" if kind in ("SSL", "mutual TLS") else "SASL_SSL"


class Java:
    """Apache Kafka's clients."""

    name = "java"
    kinds = KINDS

    def __init__(self, java: JavaSide) -> None:
        self._java = java

    def settings(self, at: SecuredNode, kind: str) -> dict[str, str]:
        """Of a producer or a consumer."""
        settings = {
            "security.protocol": _protocol(kind),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": at.authority,
            "max.block.ms": "20000",
        }
        if kind == "mutual TLS":
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": at.pair}
        elif kind == "OAUTHBEARER":
            file = at.bearer_file
            allowed = {"urls": f"{file.as_uri()},file:{file}", "files": str(file)}
            for what, value in allowed.items():
                self._java.ask("property", name=f"org.apache.kafka.sasl.oauthbearer.allowed.{what}", value=value)
            settings |= {
                "sasl.mechanism": kind,
                "sasl.jaas.config": f"{JAAS}.oauthbearer.OAuthBearerLoginModule required;",
                "sasl.login.callback.handler.class": f"{JAAS}.oauthbearer.OAuthBearerLoginCallbackHandler",
                "sasl.oauthbearer.jwt.retriever.class": f"{JAAS}.oauthbearer.FileJwtRetriever",
                "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
            }
        elif kind != "SSL":
            mechanism, user, password = at.login(kind)
            module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            more = ' tokenauth="true"' if kind == TOKEN else ""
            login = f'{JAAS}.{module} required username="{user}" password="{password}"{more};'
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        return settings

    def round_trip(self, at: SecuredNode, kind: str, version: str, topic: str, values: Sequence[bytes]) -> list[bytes]:
        settings, bootstrap = self.settings(at, kind), at.address(kind, version)
        records = [{"partition": 0, "key": None, "value": as_text(value), "timestamp": 1, "headers": []} for value in values]
        config = settings | {"max.request.size": str(MAX_REQUEST_BYTES)}
        written = self._java.ask("produce", bootstrap=bootstrap, topic=topic, config=config, records=records)
        assert written["offsets"] == list(range(len(values)))
        return self._read(bootstrap, settings, topic, len(values), LIMIT_S)

    def read_under_load(self, at: SecuredNode, kind: str, version: str, topic: str, seconds: float) -> int:
        """How many records a consumer reads in that time, where sessions are short."""
        settings = self.settings(at, kind)
        return len(self._read(at.address(kind, version, short=True), settings, topic, MORE_THAN_WRITTEN, seconds))

    def _read(self, bootstrap: str, settings: dict[str, str], topic: str, count: int, seconds: float) -> list[bytes]:
        asked = {"topic": topic, "partitions": [0], "count": count, "timeout_ms": int(seconds * 1000), "from": "beginning"}
        answer = self._java.ask("consume", bootstrap=bootstrap, config=settings, **asked)
        return [as_bytes(each["value"]) or b"" for each in answer["records"]]


class Librdkafka:
    """confluent-kafka."""

    name = "librdkafka"
    kinds = WITHOUT_TOKEN

    def __init__(self, bearer_life_s: float = 3600) -> None:
        self._life_s = bearer_life_s

    def settings(self, at: SecuredNode, kind: str) -> dict[str, Any]:
        """Without the address."""
        settings: dict[str, Any] = {"security.protocol": _protocol(kind), "ssl.ca.location": at.authority}
        if kind == "mutual TLS":
            return settings | {"ssl.certificate.location": at.pair, "ssl.key.location": at.pair}
        if kind == "OAUTHBEARER":
            return settings | {"sasl.mechanism": kind, "oauth_cb": lambda _: (bearer(self._life_s), time.time() + self._life_s)}
        if kind != "SSL":
            mechanism, user, password = at.login(kind)
            return settings | {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        return settings

    def round_trip(self, at: SecuredNode, kind: str, version: str, topic: str, values: Sequence[bytes]) -> list[bytes]:
        settings = self.settings(at, kind) | {"bootstrap.servers": at.address(kind, version)}
        producer = confluent_kafka.Producer(settings | {"message.max.bytes": MAX_REQUEST_BYTES})
        failed: list[Any] = []
        for value in values:
            producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failed.append(error) if error else None)
        assert (producer.flush(LIMIT_S), failed) == (0, [])
        consumer = confluent_kafka.Consumer(settings | {"group.id": "not-a-group"})
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        read = []
        for _ in values:
            message = consumer.poll(LIMIT_S)
            assert message is not None, "no record"
            assert message.error() is None, message.error()
            read.append(message.value())
        consumer.close()
        return read

    def write(self, at: SecuredNode, kind: str, version: str, topic: str, seconds: float) -> list[int]:
        errors: list[Any] = []
        offsets: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            errors.append(error) if error is not None else offsets.append(message.offset())

        # Beside sessions that the node limits, tokens that are renewed would mean two logins within a second, which is refused.
        address = at.address(kind, version, short=self._life_s > SHORT_LIFE_S)
        producer = confluent_kafka.Producer(self.settings(at, kind) | {"bootstrap.servers": address, "error_cb": errors.append})
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            producer.produce(topic, b"v", partition=0, on_delivery=delivered)
            producer.poll(0)
            time.sleep(PAUSE_S)
        assert (producer.flush(LIMIT_S), errors) == (0, [])
        return offsets


class _AioTokens(aiokafka.abc.AbstractTokenProvider):
    async def token(self) -> str:
        return bearer()


class _PythonTokens(kafka.net.sasl.oauth.AbstractTokenProvider):
    def token(self) -> str:
        return bearer()


def _python(at: SecuredNode, kind: str, address: str, tokens: Any) -> dict[str, Any]:
    """The names of settings that aiokafka took from kafka-python."""
    context = ssl.create_default_context(cafile=at.authority)
    settings: dict[str, Any] = {
        "bootstrap_servers": address,
        "security_protocol": _protocol(kind),
        "ssl_context": context,
    }
    if kind == "mutual TLS":
        context.load_cert_chain(at.pair)
    elif kind == "OAUTHBEARER":
        settings |= {"sasl_mechanism": kind, "sasl_oauth_token_provider": tokens}
    elif kind != "SSL":
        mechanism, user, password = at.login(kind)
        settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}
    return settings


class Aiokafka:
    """aiokafka, each call in an event loop of its own. It does not log in again on a connection."""

    name = "aiokafka"
    kinds = WITHOUT_TOKEN

    def round_trip(self, at: SecuredNode, kind: str, version: str, topic: str, values: Sequence[bytes]) -> list[bytes]:
        async def main() -> list[bytes]:
            settings = _python(at, kind, at.address(kind, version), _AioTokens())
            async with aiokafka.AIOKafkaProducer(**settings, max_request_size=MAX_REQUEST_BYTES) as producer:
                for value in values:
                    await producer.send_and_wait(topic, value, partition=0)
            async with aiokafka.AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
                return [(await consumer.getone()).value for _ in values]

        return asyncio.run(asyncio.wait_for(main(), LIMIT_S))


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"
    kinds = WITHOUT_TOKEN

    def round_trip(self, at: SecuredNode, kind: str, version: str, topic: str, values: Sequence[bytes]) -> list[bytes]:
        settings = _python(at, kind, at.address(kind, version), _PythonTokens())
        producer = kafka.KafkaProducer(**settings, max_request_size=MAX_REQUEST_BYTES)
        for value in values:
            producer.send(topic, value, partition=0).get(LIMIT_S)
        producer.close()
        consumer = kafka.KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=LIMIT_S * 1000)
        read = [next(consumer).value for _ in values]
        consumer.close()
        return read

    def write(self, at: SecuredNode, kind: str, version: str, topic: str, seconds: float) -> list[int]:
        producer = kafka.KafkaProducer(**_python(at, kind, at.address(kind, version, short=True), _PythonTokens()))
        end = time.monotonic() + seconds
        offsets = []
        while time.monotonic() < end:
            offsets.append(producer.send(topic, b"v", partition=0).get(LIMIT_S).offset)
            time.sleep(PAUSE_S)
        producer.close()
        return offsets


class FranzGo:
    """franz-go, in a program of ours (``franz/main.go``) that Go builds."""

    name = "franz-go"
    kinds = KINDS

    def __init__(self) -> None:
        """JarsMissing when it cannot be built."""
        self._program = _built()

    def round_trip(self, at: SecuredNode, kind: str, version: str, topic: str, values: Sequence[bytes]) -> list[bytes]:
        found = self._run(at, kind, at.address(kind, version), topic, Records=[as_text(value) for value in values])
        assert found["Offsets"] == list(range(len(values)))
        return [base64.b64decode(value) for value in found["Values"]]

    def write(self, at: SecuredNode, kind: str, version: str, topic: str, seconds: float) -> list[int]:
        offsets: list[int] = self._run(at, kind, at.address(kind, version, short=True), topic, Seconds=seconds)["Offsets"]
        return offsets

    def _run(self, at: SecuredNode, kind: str, address: str, topic: str, **more: Any) -> dict[str, Any]:
        task = {"Seed": address, "Topic": topic, "Authority": at.authority, **more}
        if kind == "mutual TLS":
            task["Pair"] = at.pair
        elif kind != "SSL":
            mechanism, user, password = at.login(kind)
            task |= {"Mechanism": mechanism, "User": user, "Password": password, "Token": kind == TOKEN, "Bearer": bearer()}
        done = subprocess.run(
            [self._program], input=json.dumps(task), capture_output=True, text=True, check=False, timeout=LIMIT_S + 90
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


class Tidelog:
    """The admin client of this package, which carries no records."""

    name = "tidelog"
    kinds = KINDS

    def settings(self, at: SecuredNode, kind: str) -> dict[str, str]:
        """Of an ``AdminClient``."""
        settings = {"security.protocol": _protocol(kind), "ssl.ca.location": at.authority}
        if kind == "mutual TLS":
            return settings | {"ssl.certificate.location": at.pair, "ssl.key.location": at.pair}
        if kind == "OAUTHBEARER":
            return settings | {"sasl.mechanism": kind, "sasl.oauthbearer.token.endpoint.url": at.bearer_file.as_uri()}
        if kind != "SSL":
            mechanism, user, password = at.login(kind)
            login = f'{JAAS}.X required username="{user}" password="{password}" tokenauth="{str(kind == TOKEN).lower()}";'
            return settings | {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        return settings

    def topics(self, at: SecuredNode, kind: str, version: str) -> list[str]:
        """The names of all topics."""

        async def main() -> list[str]:
            async with AdminClient(at.address(kind, version), self.settings(at, kind)) as client:
                return await client.topics.names()

        return asyncio.run(asyncio.wait_for(main(), LIMIT_S))

    def write(self, at: SecuredNode, kind: str, version: str, topic: str, seconds: float) -> list[int]:
        """The numbers of requests that were answered, on one connection."""

        async def main() -> list[int]:
            end = time.monotonic() + seconds
            answered = []
            async with AdminClient(at.address(kind, version, short=True), self.settings(at, kind)) as client:
                lines = set()
                while time.monotonic() < end:
                    assert topic in await client.topics.names()
                    answered.append(len(answered))
                    lines |= {id(await each) for each in client._client._lines.values()}
                    await asyncio.sleep(PAUSE_S)
            assert len(lines) <= 2, "to the address it was given, and to the one that is advertised"
            return answered

        return asyncio.run(asyncio.wait_for(main(), seconds + LIMIT_S))


def _built() -> Path:
    """The program; its modules come from Go's proxy, with the sums in go.sum."""
    sources = [FRANZ / name for name in ("go.mod", "go.sum", "main.go")]
    stamp = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()[:12]
    program = cache() / f"franz-{stamp}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise JarsMissing("'go' is not installed, and franz-go needs it: install Go 1.26")
    cache().mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")
    command = [go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(fresh), "."]
    done = subprocess.run(command, cwd=FRANZ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JarsMissing(f"franz-go cannot be built:\n{done.stderr[-2000:]}")
    fresh.rename(program)
    return program


RENEWING_KINDS = SASL
"""Of users; sessions by a delegation token are in ``test_delegation_tokens``."""
