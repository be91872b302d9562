"""Sockets to brokers: what a server can do wrong, and the errors a user sees."""

from __future__ import annotations

import socket
import struct
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.client.net.servers import server
from tidelog import __version__
from tidelog.broker import authentication
from tidelog.client import connection_opening
from tidelog.client.admin.topics import list_offsets, topics
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net.blocking import BlockingClient, BrokerSocket
from tidelog.client.settings import ClientSettings, parse_settings
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.testing import Broker


def settings(**given: str) -> ClientSettings:
    return parse_settings({"bootstrap.servers": "127.0.0.1:1", **{name.replace("_", "."): text for name, text in given.items()}})


def connect(port: int, **given: str) -> BrokerSocket:
    return BrokerSocket(settings(**given), "127.0.0.1", port, None)


def test_requests_sent_ahead_are_answered_in_order() -> None:
    with Broker() as broker:
        broker.create_topic("t", 3)
        connection = connect(broker.port)
        connection.send(MetadataRequest(topics=[]))
        connection.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
        assert [len(connection.receive().topics) for _ in range(2)] == [0, 1]
        connection.close()


def test_nobody_there_is_told_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoConnection, match=rf"127\.0\.0\.1:{port} cannot be reached"):
        connect(port)


def test_a_server_that_hangs_up_is_told_with_what_may_be_wrong() -> None:
    with server(lambda connection: None) as port, pytest.raises(NoConnection, match=r"security.protocol|ended"):
        connect(port)


def test_a_server_that_resets_the_connection_is_told_with_what_may_be_wrong() -> None:
    def reset(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with server(reset) as port, pytest.raises(NoConnection, match=r"ended before the first answer\. .*\(security\.protocol\)"):
        connect(port)


def test_a_server_that_says_nothing_is_given_up() -> None:
    done = threading.Event()
    with server(lambda connection: (done.wait(10), None)[1]) as port:
        with pytest.raises(NoConnection, match="did not answer within 50 ms"):
            connect(port, request_timeout_ms="50")
        done.set()


@pytest.mark.parametrize("answer", [b"\x7f\xff\xff\xff", b"\0\0\0\4\0\0\0\7", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_that_is_no_broker_is_told_as_such(answer: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(answer)

    with server(serve) as port, pytest.raises(NoConnection, match=r"does not answer as a Kafka broker|closed the connection"):
        connect(port)


def test_a_listener_without_sasl_is_told_with_the_setting() -> None:
    told = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "u", "sasl_password": "p"}
    with Broker() as broker, pytest.raises(NotAuthenticated, match=r"has no SASL there: set security\.protocol"):
        connect(broker.port, security_protocol="SASL_PLAINTEXT", **told)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it answers HTTP: that is the port of a web server"),
        (b"\x15\x03\x03\0\2\2\x16", r"it speaks TLS there: set security\.protocol to SSL or SASL_SSL"),
    ],
)
def test_another_protocol_is_named(answer: bytes, said: str) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(answer)

    with server(serve) as port, pytest.raises(NoConnection, match=said) as raised:
        connect(port)
    assert (raised.value.reached, raised.value.sent) == (True, False)


def test_a_client_runs_calls_on_the_first_server_that_answers() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        given = parse_settings({"bootstrap.servers": f"127.0.0.1:1,{broker.bootstrap_servers}"})
        with BlockingClient(given) as client:
            assert [topic.name for topic in client.run(topics(["t"]))] == ["t"]
            assert client.run(list_offsets({("t", 0): -1}))["t", 0].offset == 0


@pytest.fixture
def short_sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """A broker whose sessions have an end; its clients log in again before each request, and may do so at once."""
    monkeypatch.setattr(authentication, "LEAST_BETWEEN_MS", 0)
    for name in ("LEAST_BETWEEN_S", "EARLIEST_SHARE", "LATEST_SHARE"):
        monkeypatch.setattr(connection_opening, name, 0.0)
    with Broker(users={"me": "secret"}, config={"connections.max.reauth.ms": 60_000}) as broker:
        yield broker


LOGIN = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "me"}


def test_a_client_logs_in_again_on_its_connection(short_sessions: Broker) -> None:
    connection = connect(short_sessions.port, **LOGIN, sasl_password="secret")
    assert connection.session_ends
    for _ in range(3):
        assert connection.ask(MetadataRequest(topics=[])).topics == []
    connection.send(MetadataRequest(topics=[]))
    assert connection.receive().topics == []
    connection.close()


def test_a_login_that_fails_ends_the_connection_before_the_request_is_sent(
    short_sessions: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "LEAST_BETWEEN_MS", 60_000)
    connection = connect(short_sessions.port, **LOGIN, sasl_password="secret")
    assert connection.ask(MetadataRequest(topics=[])).topics == [], "the first later login may come at once"
    with pytest.raises(NotAuthenticated):
        connection.ask(MetadataRequest(topics=[]))
    with pytest.raises(NoConnection) as raised:
        connection.ask(MetadataRequest(topics=[]))
    assert not raised.value.sent


def test_the_version_that_brokers_see_is_the_packages() -> None:
    project = Path(__file__).parents[4] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == __version__
