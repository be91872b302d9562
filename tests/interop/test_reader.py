"""The reader behind ``format("tidelog")``, without Spark, on an Apache Kafka node: codecs, transactions, TLS and SASL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytest.importorskip("pyarrow", reason="the reader gives out Arrow's record batches")

from tests.interop.java import JavaSide
from tests.interop.secured_apache import Brokers, secured_apache
from tidelog.client.failures import NotAuthenticated
from tidelog.client.settings import ClientSettings, parse_settings
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from tidelog.spark.cluster import Cluster
from tidelog.spark.reader import PartitionReader, ReadSettings, ReadTask

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def apache(java: JavaSide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """An Apache Kafka node with a listener of every security protocol."""
    with secured_apache(java, tmp_path_factory.mktemp("reader")) as brokers:
        fill(brokers.addresses["PLAINTEXT"])
        yield brokers


def fill(bootstrap: str) -> None:
    """A topic that all read, and one with transactions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("t", 1, 1), NewTopic("txn", 1, 1)]).values():
        created.result()
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
