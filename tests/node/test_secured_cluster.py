"""``tidelog secure`` and ``tidelog cluster`` as people use them: clients with the made files are let in, others are not."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient as ConfluentAdmin

from tests.certificates import Authority
from tests.interop.nodes import environment
from tests.node.console_tools import run
from tests.node.test_local_cluster import free_port, port_is_free
from tidelog.client import AdminClient, NoConnection, NotAuthenticated
from tidelog.config.properties import parse

BOUND_S = 60


class Secured:
    """The running cluster, and the settings of its administrator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        while True:
            # 4000 lower, so that the ports between brokers are below the ephemeral range, too.
            self.port = free_port() - 4000
            if all(port_is_free(self.port + offset + step) for offset in (0, 1000, 2000, 3000) for step in range(3)):
                break
        self.output = folder.parent / "output"
        command = [sys.executable, "-m", "tidelog.cli.main", "cluster", "3", "--secure"]
        command += ["--dir", str(folder), "--port", str(self.port)]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
        deadline = time.monotonic() + BOUND_S
        while "cluster ready: 3 nodes" not in self.said():
            assert time.monotonic() < deadline, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)
        self.bootstrap = f"localhost:{self.port}"
        self.java = parse((folder / "admin.properties").read_text())
        self.python: dict[str, Any] = json.loads((folder / "admin.json").read_text())

    def said(self) -> str:
        return self.output.read_text(errors="replace")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    cluster = Secured(tmp_path_factory.mktemp("secure") / "cluster")
    yield cluster
    cluster.process.send_signal(signal.SIGTERM)
    assert cluster.process.wait(BOUND_S) == 0, cluster.said()


async def names(bootstrap: str, settings: dict[str, str]) -> set[str]:
    async with AdminClient(bootstrap, settings) as admin:
        return set(await admin.topics.names())


def test_the_administrators_files_let_in_each_client(secured: Secured) -> None:
    done = run(
        *("topics", "--bootstrap-server", secured.bootstrap, "--command-config", str(secured.folder / "admin.properties")),
        *("--create", "--topic", "orders", "--partitions", "3", "--replication-factor", "3"),
    )
    assert done.stdout == b"Created topic orders.\n", done.stderr
    assert "orders" in asyncio.run(names(secured.bootstrap, secured.java))
    producer = Producer({**secured.python, "acks": "all"})
    for number in range(100):
        producer.produce("orders", str(number).encode())
    assert producer.flush(BOUND_S) == 0
    kept = parse((secured.folder / "admin.conf").read_text())
    consumer = Consumer({**kept, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found: set[bytes | None] = set()
    deadline = time.monotonic() + BOUND_S
    while len(found) < 100:
        assert time.monotonic() < deadline, len(found)
        found |= {message.value() for message in consumer.consume(100, 0.5) if message.error() is None}
    consumer.close()


def test_our_client_is_refused_without_the_password_the_authority_or_tls(secured: Secured) -> None:
    jaas = secured.java["sasl.jaas.config"]
    wrong = jaas.replace('password="', 'password="not-')
    with pytest.raises(NotAuthenticated, match="SCRAM-SHA-512"):
        asyncio.run(names(secured.bootstrap, {**secured.java, "sasl.jaas.config": wrong}))
    with pytest.raises(NotAuthenticated, match="is not trusted"):
        asyncio.run(names(secured.bootstrap, {**secured.java, "ssl.truststore.certificates": Authority().pem}))
    for port in (secured.port, secured.port + 1000, secured.port + 3000):
        with pytest.raises(NoConnection):
            asyncio.run(names(f"localhost:{port}", {"security.protocol": "PLAINTEXT"}))


def refused_by_librdkafka(settings: dict[str, Any], reason: int) -> None:
    """librdkafka reports ``reason``, and is not let in. An attempt may end before it gets so far, at an address that refuses it
    or in a handshake that is cut short, and is then reported as _TRANSPORT: the client connects again, so the reason still comes.
    """
    errors: list[KafkaError] = []
    client = ConfluentAdmin({**settings, "error_cb": errors.append, "log_level": 0})
    deadline = time.monotonic() + BOUND_S
    while reason not in {each.code() for each in errors}:
        assert time.monotonic() < deadline, f"librdkafka reports only {errors}"
        client.poll(0.1)
    passing = {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}
    assert {each.code() for each in errors} <= {reason} | passing, errors
    with pytest.raises(KafkaException):
        client.list_topics(timeout=2)


def test_librdkafka_is_refused_without_the_password_or_the_authority(secured: Secured) -> None:
    refused_by_librdkafka({**secured.python, "sasl.password": "not it"}, KafkaError._AUTHENTICATION)
    refused_by_librdkafka({**secured.python, "ssl.ca.pem": Authority().pem}, KafkaError._SSL)
    plain = {"bootstrap.servers": secured.bootstrap, "security.protocol": "PLAINTEXT"}
    with pytest.raises(KafkaException):
        ConfluentAdmin({**plain, "log_level": 0}).list_topics(timeout=5)


@pytest.mark.parametrize("offset", [1000, 3000])
def test_listeners_between_nodes_ask_for_a_certificate_of_the_authority(offset: int, secured: Secured, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.pem"
    stranger.write_text(Authority().issue("node-1", "localhost").both)
    for certificate in (None, stranger):
        context = ssl.create_default_context(cafile=str(secured.folder / "authority" / "authority.pem"))
        if certificate is not None:
            context.load_cert_chain(certificate)
        with (
            socket.create_connection(("localhost", secured.port + offset), timeout=BOUND_S) as plain,
            # In TLS 1.3 a client learns that it is refused when it reads for the first time.
            pytest.raises((ssl.SSLError, ConnectionResetError)),
            context.wrap_socket(plain, server_hostname="localhost") as tls,
        ):
            assert tls.recv(1) == b""
            raise ConnectionResetError


def test_a_user_without_acls_may_do_nothing(secured: Secured) -> None:
    config = str(secured.folder / "admin.properties")
    change = ("--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", "SCRAM-SHA-512=[password=secret]")
    done = run("configs", "--bootstrap-server", secured.bootstrap, "--command-config", config, *change)
    assert done.returncode == 0, done.stderr
    mine = {name: text for name, text in secured.java.items() if name != "sasl.jaas.config"}
    mine |= {"sasl.username": "ann", "sasl.password": "secret"}
    assert asyncio.run(names(secured.bootstrap, mine)) == set()


def test_the_cluster_shows_its_state_and_restarts_with_the_administrators_login(secured: Secured) -> None:
    state = run("cluster", "status", "--dir", str(secured.folder))
    assert state.stdout.count(b"serves") == 3, state.stdout
    assert run("cluster", "add", "--dir", str(secured.folder)).returncode == 1
    before = (secured.folder / "node-2" / "pid").read_text()
    assert run("secure", "rotate", str(secured.folder)).returncode == 0
    done = run("cluster", "restart", "2", "--dir", str(secured.folder))
    assert done.stdout == b"Node 2 was restarted, and is in sync.\n", (done.stderr, secured.said())
    assert (secured.folder / "node-2" / "pid").read_text() != before
