"""A producer whose password is changed while it writes: its connection ends, and with the old password it gets no other one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, Producer

from tests.unit.cli.running_node import node_in_a_thread
from tidelog.cli.tools.configs import command

LIMIT_S = 30


class World:
    """A node with a plain listener for its administrator and one with SCRAM."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.admin, self.scram = (f"localhost:{ports[name]}" for name in ("PLAINTEXT", "USERS"))
        self.errors: list[KafkaError] = []

    def configs(self, user: str, *words: str) -> None:
        flags = ["--bootstrap-server", self.admin, "--alter", "--entity-type", "users", "--entity-name", user, *words]
        done = CliRunner().invoke(command, flags)
        assert done.exit_code == 0, done.output

    def password(self, user: str, password: str) -> None:
        self.configs(user, "--add-config", f"SCRAM-SHA-512=[password={password}]")

    def producer(self, user: str, password: str) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.scram,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": user,
                "sasl.password": password,
                "message.timeout.ms": "20000",
                "error_cb": self.errors.append,
            }
        )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = {
        "listeners": "PLAINTEXT://localhost:0,USERS://localhost:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "listener.name.users.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "tidelog.scram.changes.end.sessions": "true",
    }
    with node_in_a_thread(tmp_path, **settings) as node:
        yield World(node.ports)


def written(producer: Producer) -> bool:
    told: list[KafkaError | None] = []
    producer.produce("t", b"v", on_delivery=lambda error, message: told.append(error))
    return producer.flush(LIMIT_S) == 0 and told == [None]


def refused(world: World, producer: Producer) -> None:
    """Waits until the producer learns that its login fails."""
    deadline = time.monotonic() + LIMIT_S
    while not any(each.code() == KafkaError._AUTHENTICATION for each in world.errors):
        assert time.monotonic() < deadline, world.errors
        producer.poll(0.1)


@pytest.mark.parametrize("removed", [True, False])
def test_a_client_without_its_credential_is_cut_off_and_others_stay(world: World, removed: bool) -> None:
    world.password("carol", "pencil")
    world.password("dave", "pencil")
    carol, dave = world.producer("carol", "pencil"), world.producer("dave", "pencil")
    assert written(carol) and written(dave)
    if removed:
        world.configs("carol", "--delete-config", "SCRAM-SHA-512")
    else:
        world.password("carol", "another")
    refused(world, carol)
    assert written(dave)
    world.password("carol", "pencil")
    assert written(world.producer("carol", "pencil"))
