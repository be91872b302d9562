"""TLS as clients of other people see it: stores of Java, certificates that are missing, not trusted or replaced."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from cryptography.x509 import load_der_x509_certificate

from tests.certificates import Authority, Issued, java_trust_store
from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running

pytestmark = pytest.mark.interop

KINDS = ("SSL", "mutual")
LIMIT_S = 30
BIG = b"0123456789abcdef" * 40_000
"""More than a TLS record, a socket's buffer and a transport's turn."""
NAMES = ("PLAINTEXT", "CONTROLLER", "OPEN", "MUTUAL", "STORES")


class Secured:
    """A node with a plain listener for its administrator, and one TLS listener of each kind."""

    def __init__(self, node: Node, ports: dict[str, int], folder: Path, authority: Authority) -> None:
        self.node, self.folder, self.authority = node, folder, authority
        self.by_kind = dict(zip(KINDS, (f"localhost:{ports[name]}" for name in ("OPEN", "MUTUAL")), strict=True))
        self.stores = f"localhost:{ports['STORES']}"

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def java(self, kind: str) -> dict[str, str]:
        settings = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.path("authority.pem"),
            "max.block.ms": "20000",
        }
        if kind == "mutual":
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.path("me.pem")}
        return settings

    def librdkafka(self, kind: str) -> dict[str, Any]:
        settings = {
            "bootstrap.servers": self.by_kind[kind],
            "security.protocol": "SSL",
            "ssl.ca.location": self.path("authority.pem"),
        }
        if kind == "mutual":
            settings |= {"ssl.certificate.location": self.path("me.pem"), "ssl.key.location": self.path("me.pem")}
        return settings


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority()
    node_pair, me = authority.issue("node", "localhost", "127.0.0.1"), authority.issue("me")
    for name, text in (("authority.pem", authority.pem), ("node.pem", node_pair.both), ("me.pem", me.both)):
        (folder / name).write_text(text)
    (folder / "node.p12").write_bytes(node_pair.pkcs12("secret"))
    (folder / "authority.p12").write_bytes(java_trust_store("secret", authority))
    (folder / "me.p12").write_bytes(me.pkcs12("secret"))
    ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
    properties = {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,OPEN:SSL,MUTUAL:SSL,STORES:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "authority.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.stores.ssl.client.auth": "required",
        "listener.name.stores.ssl.keystore.type": "PKCS12",
        "listener.name.stores.ssl.keystore.location": str(folder / "node.p12"),
        "listener.name.stores.ssl.keystore.password": "secret",
        "listener.name.stores.ssl.truststore.type": "PKCS12",
        "listener.name.stores.ssl.truststore.location": str(folder / "authority.p12"),
        "listener.name.stores.ssl.truststore.password": "secret",
    }
    node = Node("tidelog", tmp_path_factory.mktemp("secured"), java, properties, ports=[ports["PLAINTEXT"], ports["CONTROLLER"]])
    with running(node) as started:
        yield Secured(started, ports, folder, authority)


def round_trip(java: JavaSide, bootstrap: str, config: dict[str, str], topic: str) -> list[bytes]:
    records = [{"partition": 0, "key": None, "value": as_text(value), "timestamp": 1, "headers": []} for value in (b"v", BIG)]
    config = config | {"max.request.size": "2000000"}
    answer = java.ask("produce", bootstrap=bootstrap, topic=topic, config=config, records=records)
    assert answer["offsets"] == [0, 1]
    config.pop("max.request.size")
    asked = {"bootstrap": bootstrap, "topic": topic, "config": config, "partitions": [0], "count": 2, "from": "beginning"}
    return [each["value"] for each in java.ask("consume", timeout_ms=LIMIT_S * 1000, **asked)["records"]]


def test_java_reads_a_listener_with_pkcs12_stores_by_its_own(secured: Secured, java: JavaSide) -> None:
    config = {
        "security.protocol": "SSL",
        "ssl.truststore.location": secured.path("authority.p12"),
        "ssl.truststore.password": "secret",
        "ssl.keystore.location": secured.path("me.p12"),
        "ssl.keystore.password": "secret",
        "ssl.enabled.protocols": "TLSv1.2",
        "max.block.ms": "20000",
    }
    secured.node.create("java-stores", 1)
    assert round_trip(java, secured.stores, config, "java-stores") == [as_text(b"v"), as_text(BIG)]


def test_each_library_says_that_a_certificate_is_missing_or_not_trusted(secured: Secured, java: JavaSide) -> None:
    records = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]
    with pytest.raises(JavaFailed, match="SslAuthenticationException"):
        java.ask("produce", bootstrap=secured.by_kind["mutual"], topic="never", config=secured.java("SSL"), records=records)
    no_trust = {name: text for name, text in secured.java("SSL").items() if "truststore" not in name}
    with pytest.raises(JavaFailed, match="SslAuthenticationException"):
        java.ask("produce", bootstrap=secured.by_kind["SSL"], topic="never", config=no_trust, records=records)
    errors: list[Any] = []
    settings = secured.librdkafka("SSL") | {"bootstrap.servers": secured.by_kind["mutual"], "error_cb": errors.append}
    producer = confluent_kafka.Producer(settings)
    deadline = time.monotonic() + LIMIT_S
    while not errors:
        producer.poll(0.1)
        assert time.monotonic() < deadline, "librdkafka reports no error"
    told = secured.node.log_file.read_text()
    assert "the client shows no certificate, and ssl.client.auth is required" in told
    assert "does not accept this node's certificate" in told


def test_kafkas_own_tool_shows_its_certificate(secured: Secured, java: JavaSide) -> None:
    config = secured.folder / "tool.properties"
    config.write_text("".join(f"{name}={text}\n" for name, text in secured.java("mutual").items()))
    made = java.tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", secured.by_kind["mutual"], "--command-config", str(config), "--create", "--topic", "by-tool"),
    )
    assert made["out"].strip() == "Created topic by-tool.", made


def shown(secured: Secured) -> int:
    """The serial number of the certificate that a new client is shown."""
    context = ssl.create_default_context(cafile=secured.path("authority.pem"))
    host, _, port = secured.by_kind["SSL"].rpartition(":")
    with socket.create_connection((host, int(port)), 10) as plain, context.wrap_socket(plain, server_hostname=host) as client:
        certificate = client.getpeercert(True)
    assert certificate is not None
    return load_der_x509_certificate(certificate).serial_number


def until_shown(secured: Secured, serial: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while shown(secured) != serial:
        assert time.monotonic() < deadline, "the new certificate is not shown"
        time.sleep(0.1)


def test_kafkas_own_tool_and_a_new_file_replace_a_certificate_under_load(secured: Secured, java: JavaSide) -> None:
    """A producer that stays connected notices neither; a certificate of another name is refused."""

    def configs(*args: str) -> dict[str, Any]:
        entity = ("--entity-type", "brokers", "--entity-name", "1")
        return java.tool("kafka.admin.ConfigCommand", "--bootstrap-server", secured.node.bootstrap, *entity, *args)

    def stored(name: str, issued: Issued) -> str:
        (secured.folder / name).write_text(issued.both)
        return f"listener.name.open.ssl.keystore.location={secured.path(name)}"

    errors: list[Any] = []
    delivered: list[int] = []
    producer = confluent_kafka.Producer(secured.librdkafka("SSL") | {"error_cb": errors.append})

    def write(count: int = 200) -> None:
        for _ in range(count):
            producer.produce("rolled", b"v", partition=0, on_delivery=lambda error, message: delivered.append(message.offset()))
            producer.poll(0.005)

    secured.node.create("rolled", 1)
    write()
    renewed = secured.authority.issue("node", "localhost", "127.0.0.1")
    done = configs("--alter", "--add-config", stored("renewed.pem", renewed))
    assert done["status"] == 0, done
    write()
    until_shown(secured, renewed.certificate.serial_number)
    refused = configs("--alter", "--add-config", stored("other.pem", secured.authority.issue("other", "localhost", "127.0.0.1")))
    assert "ssl.allow.dn.changes" in refused["out"] + refused["err"]
    again = secured.authority.issue("node", "localhost", "127.0.0.1")
    stored("renewed.pem", again)  # the file in place, as a certificate manager does
    write()
    until_shown(secured, again.certificate.serial_number)
    write()
    assert producer.flush(LIMIT_S) == 0
    assert (errors, delivered) == ([], list(range(800)))
