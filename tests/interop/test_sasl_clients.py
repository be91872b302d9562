"""Wrong passwords in clients of four libraries, and users managed by Kafka's tool. ``test_secured_clients`` has the logins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running

pytestmark = pytest.mark.interop

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
JAAS = "org.apache.kafka.common.security"
LIMIT_S = 30
PASSWORD = "wide-open-sesame"


def jaas(mechanism: str, user: str, password: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{JAAS}.{module} required username="{user}" password="{password}";'


def java_settings(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(mechanism, "me", password),
        "max.block.ms": "20000",
    }


def librdkafka_settings(bootstrap: str, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "me",
        "sasl.password": password,
    }


def python_settings(bootstrap: str, mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "me",
        "sasl_plain_password": password,
    }


class Secured:
    """A node with a plain listener for its administrator, and one with logins."""

    def __init__(self, node: Node, port: int) -> None:
        self.node, self.bootstrap = node, f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Secured]:
    ports = free_ports(3)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", "LOGINS"), ports, strict=True))
    users = f'{JAAS}.plain.PlainLoginModule required user_me="{PASSWORD}";'
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGINS:SASL_PLAINTEXT",
        "listener.name.logins.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.logins.plain.sasl.jaas.config": users,
    }
    node = Node("tidelog", tmp_path_factory.mktemp("secured"), java, properties, ports=ports[:2])
    with running(node) as started:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            done = configs(java, started, "--alter", "--entity-name", "me", "--add-config", f"{mechanism}=[password={PASSWORD}]")
            assert done["status"] == 0, done
        yield Secured(started, ports[2])


def configs(java: JavaSide, node: Node, *args: str) -> dict[str, Any]:
    """Apache Kafka's own kafka-configs."""
    return java.tool("kafka.admin.ConfigCommand", "--bootstrap-server", node.bootstrap, "--entity-type", "users", *args)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_an_authentication_error_in_each_library(mechanism: str, secured: Secured, java: JavaSide) -> None:
    config = java_settings(mechanism, "wrong")
    records = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]
    with pytest.raises(JavaFailed, match="SaslAuthenticationException"):
        java.ask("produce", bootstrap=secured.bootstrap, topic="never", config=config, records=records)
    errors: list[Any] = []
    settings = librdkafka_settings(secured.bootstrap, mechanism, "wrong") | {"error_cb": errors.append}
    producer = confluent_kafka.Producer(settings)
    deadline = time.monotonic() + LIMIT_S
    while not errors:
        producer.poll(0.1)
        assert time.monotonic() < deadline, "librdkafka reports no error"
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION

    async def main() -> None:
        client = aiokafka.AIOKafkaProducer(**python_settings(secured.bootstrap, mechanism, "wrong"))
        try:
            await client.start()
        finally:
            await client.stop()

    with pytest.raises((aiokafka.errors.KafkaError, kafka.errors.KafkaError)):
        asyncio.run(asyncio.wait_for(main(), LIMIT_S))
    assert PASSWORD not in secured.node.log_file.read_text()


def test_users_are_managed_by_kafkas_own_tool(secured: Secured, java: JavaSide) -> None:
    node = secured.node
    added = configs(
        java, node, "--alter", "--entity-name", "eve", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=pass]"
    )
    assert (added["status"], added["out"].strip()) == (0, "Completed updating config for user eve.")
    shown = configs(java, node, "--describe", "--entity-name", "eve")
    assert shown["out"].strip() == "SCRAM credential configs for user-principal 'eve' are SCRAM-SHA-256=iterations=8192"
    login = librdkafka_settings(secured.bootstrap, "SCRAM-SHA-256", "pass") | {"sasl.username": "eve"}
    assert confluent_kafka.Producer(login).list_topics(timeout=LIMIT_S).brokers
    deleted = configs(java, node, "--alter", "--entity-name", "eve", "--delete-config", "SCRAM-SHA-256")
    assert deleted["status"] == 0, deleted
    again = configs(java, node, "--alter", "--entity-name", "eve", "--delete-config", "SCRAM-SHA-256")
    assert again["status"] == 1
    assert "ResourceNotFound" in again["out"] + again["err"]
