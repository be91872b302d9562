"""The reader behind ``format("tidelog")``, without Spark, on an Apache Kafka node: codecs, transactions, TLS and SASL."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

pytest.importorskip("pyarrow", reason="the reader gives out Arrow's record batches")

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, free_ports, running
from tidelog.client.settings import ClientSettings, parse_settings
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from tidelog.spark.cluster import Cluster
from tidelog.spark.network import NotAuthenticated
from tidelog.spark.reader import PartitionReader, ReadSettings, ReadTask

pytestmark = pytest.mark.interop

LISTENERS = {"SSL": "SSL", "SASLSSL": "SASL_SSL", "SASLPLAIN": "SASL_PLAINTEXT"}
JAAS = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of the broker, for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "crt", "-days", "2"]
    subprocess.run(
        [*command, "-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True
    )
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "crt").read_text())
    return both


@dataclass(frozen=True)
class Brokers:
    """The addresses of one node, by security protocol, and the file to trust."""

    addresses: dict[str, str]
    pem: Path


@pytest.fixture(scope="module")
def apache(java: JavaSide, pem: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """An Apache Kafka node with a listener of every security protocol."""
    ports = free_ports(5)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", *LISTENERS), ports, strict=True))
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{LISTENERS.get(name, 'PLAINTEXT')}" for name in named),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pem),
        "log.retention.ms": "-1",
    }
    for name in ("saslssl", "saslplain"):
        prefix = f"listener.name.{name}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        properties[f"{prefix}.plain.sasl.jaas.config"] = f'{JAAS}.plain.PlainLoginModule required user_me="secret";'
        for digest in ("256", "512"):
            properties[f"{prefix}.scram-sha-{digest}.sasl.jaas.config"] = f"{JAAS}.scram.ScramLoginModule required;"
    node = Node("apache", tmp_path_factory.mktemp("reader"), java, properties, ports=ports[:2])
    with running(node):
        fill(node.bootstrap)
        addresses = {LISTENERS.get(name, name): f"127.0.0.1:{port}" for name, port in named.items()}
        yield Brokers(addresses, pem)


def fill(bootstrap: str) -> None:
    """A topic that all read, one with transactions, and a user."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("t", 1, 1), NewTopic("txn", 1, 1)]).values():
        created.result()
    kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    changes = [UserScramCredentialUpsertion("me", ScramCredentialInfo(kind, 8192), b"secret") for kind in kinds]
    for change in changes:
        admin.alter_user_scram_credentials([change])["me"].result()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
        for i in range(50):
            producer.produce("t", f"{codec} {i}", f"key {i}", headers=[("h", codec)])
        producer.flush()
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "reader", "batch.num.messages": 3})
    writer.init_transactions()
    for number in range(8):
        writer.begin_transaction()
        for i in range(10):
            writer.produce("txn", f"{number} {i}")
        writer.flush()
        (writer.abort_transaction if number % 3 == 1 else writer.commit_transaction)()


def read(settings: ClientSettings, topic: str) -> list[str]:
    """All values of a topic's only partition."""
    cluster, at = Cluster(settings), TopicPartition(topic, 0)
    topic_id = cluster.topics((topic,))[topic].topic_id
    start = cluster.offsets({at: EARLIEST_TIMESTAMP})[at]
    end = cluster.offsets({at: LATEST_TIMESTAMP}, settings.isolation_level)[at]
    task = ReadTask(at, start, end, topic_id, None)
    reader = PartitionReader(cluster, ReadSettings(settings, ("value",), True, 60_000, 1 << 20), task)
    values = [row["value"].decode() for batch in reader.batches() for row in batch.to_pylist()]
    cluster.close()
    return values


EVERYTHING = [f"{codec} {i}" for codec in ("none", "gzip", "snappy", "lz4", "zstd") for i in range(50)]


def test_every_codec_is_read(apache: Brokers) -> None:
    assert read(parse_settings({"bootstrap.servers": apache.addresses["PLAINTEXT"]}), "t") == EVERYTHING


@pytest.mark.parametrize("fetch_bytes", ["1024", "1048576"])
def test_what_was_aborted_is_left_out_unless_asked_for(apache: Brokers, fetch_bytes: str) -> None:
    told = {"bootstrap.servers": apache.addresses["PLAINTEXT"], "max.partition.fetch.bytes": fetch_bytes}
    every = [f"{number} {i}" for number in range(8) for i in range(10)]
    assert read(parse_settings(told), "txn") == [value for value in every if int(value[0]) % 3 != 1]
    assert read(parse_settings(told | {"isolation.level": "read_uncommitted"}), "txn") == every


def secured(apache: Brokers, protocol: str, mechanism: str | None, password: str = "secret") -> ClientSettings:
    told = {"bootstrap.servers": apache.addresses[protocol], "security.protocol": protocol}
    if protocol.endswith("SSL"):
        told["ssl.ca.location"] = str(apache.pem)
    if mechanism is not None:
        told |= {"sasl.mechanism": mechanism, "sasl.username": "me", "sasl.password": password}
    return parse_settings(told)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("SSL", None),
        ("SASL_SSL", "SCRAM-SHA-512"),
        ("SASL_SSL", "PLAIN"),
        ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ],
)
def test_tls_and_sasl_are_spoken_as_kafka_speaks_them(apache: Brokers, protocol: str, mechanism: str | None) -> None:
    assert read(secured(apache, protocol, mechanism), "t") == EVERYTHING


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_told_at_once(apache: Brokers, mechanism: str) -> None:
    with pytest.raises(NotAuthenticated, match=r"refuses user 'me' \(" + mechanism):
        read(secured(apache, "SASL_PLAINTEXT", mechanism, "guess"), "t")
