"""Groups and roles as clients meet them: tokens and certificates that name groups, roles given and taken by command."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException, Producer
from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.certificates import Authority
from tests.unit.cli.running_node import node_in_a_thread
from tests.unit.security.tokens import unsigned
from tidelog.cli.tools.acls import command
from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.config.listener_oauth import GROUPS_CLAIM, UNSECURED
from tidelog.config.listener_tls import GROUPS_FROM_OU

LIMIT_S = 30
DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED


class World:
    """A node with a listener for its administrator, one for tokens, and one for certificates."""

    def __init__(self, folder: Path, ports: dict[str, int], authority: Authority) -> None:
        self.folder, self.authority = folder, authority
        self.admin, self.tokens, self.certificates = (f"localhost:{ports[name]}" for name in ("PLAINTEXT", "TOKENS", "MUTUAL"))

    def acls(self, words: str) -> str:
        done = CliRunner().invoke(command, ["--bootstrap-server", self.admin, *shlex.split(words)])
        assert done.exit_code == 0, done.output
        return done.stdout

    def with_token(self, user: str, groups: Any = None) -> Producer:
        def login(_: str) -> tuple[str, float]:
            end = time.time() + 3600
            named = {} if groups is None else {"groups": groups}
            return unsigned({"sub": user, "iat": time.time(), "exp": end, **named}), end

        settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": login}
        return Producer({"bootstrap.servers": self.tokens, "topic.metadata.refresh.interval.ms": 200, **settings})

    def with_certificate(self, user: str, *units: str) -> Producer:
        parts = [(NameOID.ORGANIZATIONAL_UNIT_NAME, unit) for unit in units] + [(NameOID.COMMON_NAME, user)]
        name = x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
        store = self.folder / f"{user}.pem"
        store.write_text(self.authority.issue(name).both)
        settings = {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "authority.pem"),
            "ssl.certificate.location": str(store),
            "ssl.key.location": str(store),
        }
        return Producer({"bootstrap.servers": self.certificates, **settings})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("groups")
    authority = Authority()
    (folder / "authority.pem").write_text(authority.pem)
    (folder / "node.pem").write_text(authority.issue("node", "localhost", "127.0.0.1").both)
    settings = {
        "listeners": "PLAINTEXT://localhost:0,TOKENS://localhost:0,MUTUAL://localhost:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TOKENS:SASL_PLAINTEXT,MUTUAL:SSL",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.tokens.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        GROUPS_CLAIM: "groups",
        GROUPS_FROM_OU: "true",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "authority.pem"),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "num.partitions": "1",
    }
    with node_in_a_thread(folder, **settings) as node:
        yield World(folder, node.ports, authority)


def written(producer: Producer, topic: str) -> KafkaError | None:
    """The error of a record, None for a record that is stored."""
    told: list[KafkaError | None] = []
    try:
        producer.produce(topic, b"v", on_delivery=lambda error, message: told.append(error))
    except KafkaException as remembered:
        return KafkaError(remembered.args[0].code())
    assert producer.flush(LIMIT_S) == 0
    return told[0]


def allowed(producer: Producer, topic: str) -> bool:
    error = written(producer, topic)
    assert error is None or error.code() == DENIED, error
    return error is None


def becomes(allowed_by_now: bool, producer: Producer, topic: str) -> None:
    """librdkafka remembers for a while that a topic was denied."""
    deadline = time.monotonic() + LIMIT_S
    while allowed(producer, topic) is not allowed_by_now:
        assert time.monotonic() < deadline
        producer.poll(0.1)


def test_the_groups_of_a_token_count(world: World) -> None:
    world.acls("--add --topic shared --operation Write --operation Create --allow-principal 'Group:Domain Users'")
    world.acls("--add --topic shared --operation Write --deny-principal Group:contractors")
    assert allowed(world.with_token("alice", ["Domain Users", "other"]), "shared")
    assert allowed(world.with_token("bob", "Domain Users"), "shared")
    assert not allowed(world.with_token("carol"), "shared")
    assert not allowed(world.with_token("dave", ["Domain Users", "contractors"]), "shared")


def test_a_client_whose_groups_are_too_many_is_not_let_in(world: World) -> None:
    errors: list[KafkaError] = []
    groups = [f"g{number}" for number in range(201)]
    end = time.time() + 3600
    token = unsigned({"sub": "erin", "iat": time.time(), "exp": end, "groups": groups})
    producer = Producer(
        {
            "bootstrap.servers": world.tokens,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, end),
            "error_cb": errors.append,
        }
    )
    deadline = time.monotonic() + LIMIT_S
    while not any(each.code() == KafkaError._AUTHENTICATION for each in errors):
        assert time.monotonic() < deadline, errors
        producer.poll(0.1)


def test_the_units_of_a_certificate_count(world: World) -> None:
    world.acls("--add --topic machines --operation Write --operation Create --allow-principal Group:sensors")
    assert allowed(world.with_certificate("one", "sensors", "north"), "machines")
    assert not allowed(world.with_certificate("two", "north"), "machines")


def test_a_role_is_given_and_taken_while_its_member_stays_connected(world: World) -> None:
    carol, alice = world.with_token("carol"), world.with_token("alice", ["staff"])
    world.acls("--add --topic ledger --operation Write --operation Create --allow-principal Role:writers")
    assert not allowed(carol, "ledger")
    world.acls("--add --user-principal Role:writers --operation All --allow-principal User:carol --allow-principal Group:staff")
    becomes(True, carol, "ledger")
    assert allowed(alice, "ledger")
    said = world.acls("explain User:carol Write topic:ledger")
    assert "principal=Role:writers" in said and "has that role, by this ACL" in said
    world.acls("--remove --force --user-principal Role:writers --operation All --allow-principal User:carol")
    becomes(False, carol, "ledger")
    assert allowed(alice, "ledger")
