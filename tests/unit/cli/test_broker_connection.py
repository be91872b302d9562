from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.running_node import running_node
from tidelog.cli.broker_connection import BrokerConnection, client_settings
from tidelog.cli.refusal import CannotConnect
from tidelog.client.settings import Sasl
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest


@contextmanager
def stranger(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """Something that listens and is no broker."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connected, _ = listening.accept()
        with connected:
            behave(connected)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        thread.join(30)
        listening.close()


def test_the_first_server_that_answers_is_asked(tmp_path: Path) -> None:
    closed = socket.create_server(("127.0.0.1", 0))
    nobody = f"127.0.0.1:{closed.getsockname()[1]}"
    closed.close()
    with running_node(tmp_path) as address, BrokerConnection(f"{nobody}, {address}") as broker:
        assert broker.version_of(60) == 2
        assert [each.broker_id for each in broker.ask(DescribeClusterRequest()).brokers] == [1]


def test_where_nobody_listens_all_servers_are_named() -> None:
    with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1 .*, \[::1\]:1 "):
        BrokerConnection("127.0.0.1:1,[::1]:1")


def test_a_server_that_hangs_up_is_an_error_that_guesses_why() -> None:
    with stranger(lambda connected: connected.recv(4)) as address, pytest.raises(CannotConnect, match=r"closed|ended"):
        BrokerConnection(address)


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("request.timeout.ms=50\n")
    released = threading.Event()
    with stranger(lambda connected: released.wait(30) and None) as address:
        try:
            with pytest.raises(CannotConnect, match="within 50 ms"):
                BrokerConnection(address, str(config))
        finally:
            released.set()


def test_of_a_nodes_file_only_what_clients_know_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``metadata-quorum add-controller`` reads it: a server.properties with client settings added."""
    monkeypatch.setenv("ADMIN_SECRET", "secret")
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=controller\nsasl.mechanism.controller.protocol=PLAIN\nconfig.providers=env\n"
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=admin\nsasl.password=${env:ADMIN_SECRET}\n"
    )
    settings = client_settings("localhost:9092", str(file), "tool")
    assert settings.sasl == Sasl("PLAIN", "admin", "secret")
    file.write_text(
        file.read_text() + "sasl.kerberos.service.name=kafka\n"
        "sasl.oauthbearer.token.endpoint.url=https://login.example.com/token\n"
        "sasl.oauthbearer.client.credentials.client.id=node\n"
        "sasl.oauthbearer.client.credentials.client.secret=hush\n"
    )
    assert client_settings("localhost:9092", str(file), "tool").sasl == settings.sasl
    file.write_text(file.read_text().replace("process.roles=controller\n", ""))
    with pytest.raises(ConfigError, match=r"sasl\.mechanism\.controller"):
        client_settings("localhost:9092", str(file), "tool")
