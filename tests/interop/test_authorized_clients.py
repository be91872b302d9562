"""Clients of three libraries with exactly the permissions that they need, and with one of them missing."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import aiokafka
import aiokafka.errors
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running

pytestmark = pytest.mark.interop

LIMIT_S = 40
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
TOPIC, GROUP, TXN = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
Permission = tuple[AclOperation, ResourceType, str]
TOPIC_DENIED, GROUP_DENIED = "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"
TXN_DENIED, CLUSTER_DENIED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"
_TEXTS = {GROUP_DENIED: "Group authorization failed", CLUSTER_DENIED: "Cluster authorization failed"}
_AIOKAFKA: Mapping[type[BaseException], str] = {
    aiokafka.errors.TopicAuthorizationFailedError: TOPIC_DENIED,
    aiokafka.errors.GroupAuthorizationFailedError: GROUP_DENIED,
    aiokafka.errors.TransactionalIdAuthorizationFailed: TXN_DENIED,
}
_JAVA = {
    TOPIC_DENIED: ".TopicAuthorizationException",
    GROUP_DENIED: ".GroupAuthorizationException",
    CLUSTER_DENIED: ".ClusterAuthorizationException",
    TXN_DENIED: ".TransactionalIdAuthorizationException",
}


class Cluster:
    """A node whose user ``me`` has the ACLs of a test. Each test has topics, a group and a transactional id of its own."""

    def __init__(self, node: Node, port: int, java: JavaSide) -> None:
        self.node = node
        self.java = java
        self.bootstrap = f"127.0.0.1:{port}"
        self.admin = AdminClient({"bootstrap.servers": node.bootstrap})

    def resources(self) -> str:
        """A name for a test's topic, group and transactional id; the topic holds one record. ``hidden-`` before it is the name of
        another topic."""
        name = uuid.uuid4().hex
        for topic in (name, f"hidden-{name}"):
            self.node.create(topic, 1)
            producer = Producer({"bootstrap.servers": self.node.bootstrap})
            producer.produce(topic, f"in {topic}".encode())
            assert producer.flush(LIMIT_S) == 0
        return name

    def allow(self, *permissions: Permission) -> None:
        """The user's ACLs, which the node obeys on return."""
        (deleted,) = self.admin.delete_acls([_everything()]).values()
        deleted.result(LIMIT_S)
        wanted = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:me", "*", operation, AclPermissionType.ALLOW)
            for operation, kind, name in permissions
        ]
        for created in self.admin.create_acls(wanted).values() if wanted else ():
            created.result(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while len(self.admin.describe_acls(_everything()).result(LIMIT_S)) != len(set(permissions)):
            assert time.monotonic() < deadline, "the node does not take the ACLs"

    def end(self, topic: str) -> int:
        """The next offset of a topic."""
        found = self.admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})
        (result,) = found.values()
        return int(result.result(LIMIT_S).offset)

    @property
    def librdkafka(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "me",
            "sasl.password": "secret",
        }

    @property
    def python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "me",
            "sasl_plain_password": "secret",
        }

    @property
    def for_java(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{JAAS} username="me" password="secret";',
            "max.block.ms": "20000",
        }


def _everything() -> AclBindingFilter:
    return AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Cluster]:
    ports = free_ports(3)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", "USERS"), ports, strict=True))
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{JAAS} user_me="secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
    }
    node = Node("tidelog", tmp_path_factory.mktemp("authorized"), java, properties, ports=ports[:2])
    with running(node) as started:
        yield Cluster(started, ports[2], java)


# -- what a client does: it returns the name of the error that it got, or None ------------------------------------------------


def _code(error: KafkaError) -> str:
    """The broker's error; librdkafka wraps one that ends the producer."""
    if error.code() == KafkaError._FATAL:
        return next(code for code, text in _TEXTS.items() if text in error.str())
    return str(error.name())


def librdkafka_produces(cluster: Cluster, name: str) -> str | None:
    told: list[KafkaError | None] = []
    producer = Producer(cluster.librdkafka | {"message.timeout.ms": 20_000})
    producer.produce(name, b"v", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(LIMIT_S) == 0
    (error,) = told
    return None if error is None else _code(error)


def librdkafka_produces_idempotently(cluster: Cluster, name: str) -> str | None:
    """Without a callback: the binding calls it with a fatal error pending, which confuses the interpreter."""
    producer = Producer(cluster.librdkafka | {"message.timeout.ms": 20_000, "enable.idempotence": True})
    try:
        producer.produce(name, b"v")
        assert producer.flush(LIMIT_S) == 0
    except KafkaException as refused:
        return _code(refused.args[0])
    assert cluster.end(name) == 2
    return None


def java_produces(cluster: Cluster, name: str) -> str | None:
    records = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]
    return _of_java(
        lambda: cluster.java.ask("produce", bootstrap=cluster.bootstrap, topic=name, config=cluster.for_java, records=records)
    )


def _of_java(act: Callable[[], Any]) -> str | None:
    try:
        act()
    except JavaFailed as failed:
        return next(code for code, name in _JAVA.items() if name in str(failed))
    return None


def _aiokafka(act: Callable[[], Any]) -> str | None:
    try:
        asyncio.run(asyncio.wait_for(act(), LIMIT_S))
    except aiokafka.errors.KafkaError as refused:
        error: BaseException | None = refused
        while error is not None and type(error) not in _AIOKAFKA:
            error = error.__cause__
        return _AIOKAFKA[type(error or refused)]
    return None


def aiokafka_produces(cluster: Cluster, name: str) -> str | None:
    async def act() -> None:
        async with aiokafka.AIOKafkaProducer(**cluster.python) as producer:
            await producer.send_and_wait(name, b"v")

    return _aiokafka(act)


def librdkafka_consumes(cluster: Cluster, name: str, topic: str = "", **settings: Any) -> str | None:
    consumer = Consumer(cluster.librdkafka | {"group.id": name, "auto.offset.reset": "earliest"} | settings)
    try:
        consumer.subscribe([topic or name])
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                return _code(error)
            assert message.value() == f"in {name}".encode()
            consumer.commit(message, asynchronous=False)
            return None
        raise AssertionError("no record and no error")
    except KafkaException as refused:
        return _code(refused.args[0])
    finally:
        consumer.close()


def librdkafka_consumes_by_kip_848(cluster: Cluster, name: str) -> str | None:
    return librdkafka_consumes(cluster, name, **{"group.protocol": "consumer"})


def librdkafka_consumes_a_pattern_by_kip_848(cluster: Cluster, name: str) -> str | None:
    return librdkafka_consumes(cluster, name, f"^(hidden-)?{name}", **{"group.protocol": "consumer"})


def java_consumes(cluster: Cluster, name: str, **what: Any) -> str | None:
    config = cluster.for_java | {"group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    config |= what.pop("config", {})
    cluster.java.ask("member_start", bootstrap=cluster.bootstrap, name=name, config=config, **(what or {"topics": [name]}))

    def act() -> None:
        deadline = time.monotonic() + LIMIT_S
        values: list[str] = []
        try:
            while time.monotonic() < deadline and not values:
                values = cluster.java.ask("member_look", name=name)["values"]
                time.sleep(0.1)
        finally:
            cluster.java.ask("member_stop", name=name, how="leave")
        assert values == [f"in {name}"], "no record and no error"

    return _of_java(act)


def java_consumes_by_kip_848(cluster: Cluster, name: str) -> str | None:
    return java_consumes(cluster, name, topics=[name], config={"group.protocol": "consumer"})


def java_consumes_a_pattern_by_kip_848(cluster: Cluster, name: str) -> str | None:
    return java_consumes(cluster, name, pattern=f"(hidden-)?{name}", config={"group.protocol": "consumer"})


def aiokafka_consumes(cluster: Cluster, name: str) -> str | None:
    async def act() -> None:
        consumer = aiokafka.AIOKafkaConsumer(name, group_id=name, auto_offset_reset="earliest", **cluster.python)
        await consumer.start()
        try:
            assert (await consumer.getone()).value == f"in {name}".encode()
            await consumer.commit()
        finally:
            await consumer.stop()

    return _aiokafka(act)


def librdkafka_transacts(cluster: Cluster, name: str) -> str | None:
    producer = Producer(cluster.librdkafka | {"transactional.id": name, "transaction.timeout.ms": 20_000})
    consumer = Consumer(cluster.librdkafka | {"group.id": name})
    try:
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce(name, b"v")
        producer.flush(LIMIT_S)
        producer.send_offsets_to_transaction([TopicPartition(name, 0, 1)], consumer.consumer_group_metadata(), LIMIT_S)
        producer.commit_transaction(LIMIT_S)
    except KafkaException as refused:
        return _code(refused.args[0])
    finally:
        consumer.close()
    return None


def java_transacts(cluster: Cluster, name: str) -> str | None:
    steps = [{"values": [[0, "v"]], "end": "commit"}]
    return _of_java(
        lambda: cluster.java.ask(
            "transact", bootstrap=cluster.bootstrap, name=name, topic=name, config=cluster.for_java, steps=steps
        )
    )


def aiokafka_transacts(cluster: Cluster, name: str) -> str | None:
    async def act() -> None:
        async with aiokafka.AIOKafkaProducer(transactional_id=name, **cluster.python) as producer, producer.transaction():
            await producer.send_and_wait(name, b"v")
            await producer.send_offsets_to_transaction({aiokafka.TopicPartition(name, 0): 1}, name)

    return _aiokafka(act)


Client = Callable[[Cluster, str], str | None]
CLIENTS: Mapping[Client, Mapping[tuple[AclOperation, ResourceType], str]] = {
    librdkafka_produces: {(WRITE, TOPIC): TOPIC_DENIED},
    librdkafka_produces_idempotently: {(WRITE, TOPIC): CLUSTER_DENIED},
    java_produces: {(WRITE, TOPIC): CLUSTER_DENIED},
    aiokafka_produces: {(WRITE, TOPIC): TOPIC_DENIED},
    librdkafka_consumes: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    librdkafka_consumes_by_kip_848: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    librdkafka_consumes_a_pattern_by_kip_848: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    java_consumes: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    java_consumes_by_kip_848: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    java_consumes_a_pattern_by_kip_848: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    aiokafka_consumes: {(READ, TOPIC): TOPIC_DENIED, (READ, GROUP): GROUP_DENIED},
    librdkafka_transacts: {
        (WRITE, TXN): TXN_DENIED,
        (WRITE, TOPIC): TOPIC_DENIED,
        (READ, TOPIC): TOPIC_DENIED,
        (READ, GROUP): GROUP_DENIED,
    },
    java_transacts: {(WRITE, TXN): TXN_DENIED, (WRITE, TOPIC): TOPIC_DENIED},
    aiokafka_transacts: {
        (WRITE, TXN): TXN_DENIED,
        (WRITE, TOPIC): TOPIC_DENIED,
        (READ, TOPIC): TOPIC_DENIED,
        (READ, GROUP): GROUP_DENIED,
    },
}
"""What each client needs, and the error that it gets when it may only describe that resource."""


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_client_needs_exactly_these_permissions(cluster: Cluster, client: Client) -> None:
    needs = CLIENTS[client]
    name = cluster.resources()
    cluster.allow(*((operation, kind, name) for operation, kind in needs))
    assert client(cluster, name) is None
    for missing, error in needs.items():
        name = cluster.resources()
        left = {(operation, kind, name) for operation, kind in needs if (operation, kind) != missing}
        cluster.allow(*left, (DESCRIBE, missing[1], name))
        assert client(cluster, name) == error, missing
