"""librdkafka behind a load balancer with the PROXY protocol: ACLs see the address of the client, not of the balancer."""

from __future__ import annotations

import shlex
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, Producer

from tests.unit.cli.running_node import node_in_a_thread
from tidelog.cli.tools.acls import command
from tidelog.config.authorizer import STANDARD_AUTHORIZER

LIMIT_S = 30
NETWORKS = "listener.name.balanced.tidelog.proxy.protocol.networks"


class Balancer:
    """Passes connections on to a port, each after a header that names its client."""

    def __init__(self) -> None:
        self.target = 0
        self.header = b""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                server.sendall(self.header)
            except OSError:
                return
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listening.close()
        for each in self._open:
            each.close()


class World:
    def __init__(self, admin: str, balancer: Balancer) -> None:
        self.admin, self.balancer = admin, balancer

    def acls(self, words: str) -> None:
        done = CliRunner().invoke(command, ["--bootstrap-server", *shlex.split(f"{self.admin} {words}")])
        assert done.exit_code == 0, done.output

    def write(self, header: bytes, timeout_ms: int = 1000 * LIMIT_S) -> KafkaError | None:
        """The error of a record of a client for which the balancer sends this header."""
        self.balancer.header = header
        told: list[KafkaError | None] = []
        settings = {"bootstrap.servers": f"127.0.0.1:{self.balancer.port}", "message.timeout.ms": str(timeout_ms)}
        producer = Producer(settings)
        producer.produce("t", b"v", on_delivery=lambda error, message: told.append(error))
        assert producer.flush(2 * LIMIT_S) == 0
        return told[0]

    def answer(self, header: bytes) -> bytes:
        """The first bytes of the answer to a client for which the balancer sends this header; none when the node closes."""
        self.balancer.header = header
        request = struct.pack(">hhih", 18, 0, 7, -1)
        with socket.create_connection(("127.0.0.1", self.balancer.port), LIMIT_S) as client:
            client.sendall(struct.pack(">i", len(request)) + request)
            return client.recv(8, socket.MSG_WAITALL)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    balancer = Balancer()
    with socket.create_server(("127.0.0.1", 0)) as free:
        admin: int = free.getsockname()[1]
    settings = {
        "listeners": f"ADMIN://127.0.0.1:{admin},BALANCED://127.0.0.1:0",
        "advertised.listeners": f"ADMIN://127.0.0.1:{admin},BALANCED://127.0.0.1:{balancer.port}",
        "listener.security.protocol.map": "ADMIN:SASL_PLAINTEXT,BALANCED:PLAINTEXT",
        "listener.name.admin.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.admin.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="root" password="secret" user_root="secret";',
        "inter.broker.listener.name": "ADMIN",
        NETWORKS: "127.0.0.1",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:root",
    }
    login = tmp_path / "root.properties"
    login.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=root\nsasl.password=secret\n")
    with node_in_a_thread(tmp_path, **settings) as node:
        balancer.target = node.ports["BALANCED"]
        yield World(f"127.0.0.1:{admin} --command-config {login}", balancer)
    balancer.close()


@pytest.mark.parametrize(
    ("named", "other"),
    [
        (b"PROXY TCP4 192.0.2.7 192.0.2.1 1 2\r\n", b"PROXY TCP4 192.0.2.8 192.0.2.1 1 2\r\n"),
        (
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes([192, 0, 2, 7, 192, 0, 2, 1, 0, 1, 0, 2]),
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes([192, 0, 2, 8, 192, 0, 2, 1, 0, 1, 0, 2]),
        ),
    ],
)
def test_acls_for_an_address_are_for_the_client_behind_the_balancer(world: World, named: bytes, other: bytes) -> None:
    world.acls("--add --topic t --operation Write --operation Create --allow-principal User:ANONYMOUS --allow-host 192.0.2.7")
    assert world.write(named) is None
    refused = world.write(other)
    assert refused is not None and refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert world.answer(named)[4:] == struct.pack(">i", 7)
    assert world.answer(b"") == b"", "the balancer's own word is needed"
    without = world.write(b"", 1000)
    assert without is not None and without.code() == KafkaError._MSG_TIMED_OUT
