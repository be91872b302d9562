"""Sockets to brokers: what a server can do wrong, and what the user is told."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidelog.client.settings import ClientSettings, Tls, parse_settings
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.spark.network import BrokerSocket, NoConnection, NotAuthenticated, tls_context
from tidelog.testing import Broker


def settings(**given: str) -> ClientSettings:
    return parse_settings({"bootstrap.servers": "127.0.0.1:1", **{name.replace("_", "."): text for name, text in given.items()}})


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port of a server that does this with its first connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)


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
    with Broker() as broker, pytest.raises(NotAuthenticated, match=r"has no SASL there: set kafka\.security\.protocol"):
        connect(broker.port, security_protocol="SASL_PLAINTEXT", **told)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with key and certificate for the name ``broker``."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "crt", "-days", "2"]
    try:
        name = ["-subj", "/CN=broker", "-addext", "subjectAltName=DNS:broker"]
        subprocess.run([*command, *name], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "crt").read_text())
    return both


@contextmanager
def tls_in_front_of(broker: Broker, certificate: Path) -> Iterator[int]:
    """TLS that ends here and goes on to the broker in the clear."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(connection: socket.socket) -> None:
        try:
            inner = context.wrap_socket(connection, server_side=True)
        except OSError:
            return
        with inner, socket.create_connection(("127.0.0.1", broker.port)) as onward:
            while data := inner.recv(1 << 16):
                onward.sendall(data)
                inner.sendall(onward.recv(1 << 16))

    with server(serve) as port:
        yield port


@pytest.mark.parametrize("tls", ["by file", "by text", "unchecked"])
def test_a_certificate_that_is_trusted_is_enough(certificate: Path, tls: str) -> None:
    given = {
        "by file": Tls(ca_file=str(certificate), verify_hostname=False),
        "by text": Tls(
            ca_text=certificate.read_text(), certificate_text=certificate.read_text(), key_text="", verify_hostname=False
        ),
        "unchecked": Tls(verify=False, certificate_file=str(certificate), key_file=str(certificate)),
    }[tls]
    with Broker() as broker, tls_in_front_of(broker, certificate) as port:
        connection = BrokerSocket(settings(), "127.0.0.1", port, tls_context(given))
        assert connection.ask(MetadataRequest(topics=[])).topics == []
        connection.close()


@pytest.mark.parametrize("name_only", [True, False])
def test_a_certificate_that_is_not_trusted_is_told_with_the_setting(certificate: Path, name_only: bool) -> None:
    tls = Tls(ca_file=str(certificate)) if name_only else Tls()
    told = r"is not trusted: .* Set kafka.ssl.ca.location"
    with (
        Broker() as broker,
        tls_in_front_of(broker, certificate) as port,
        pytest.raises(NotAuthenticated, match=told),
    ):
        BrokerSocket(settings(), "127.0.0.1", port, tls_context(tls))


def test_certificates_that_cannot_be_read_are_told() -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        tls_context(Tls(ca_file="/nowhere.pem"))
