"""The settings that ``tidelog.testing.Broker(tls=...)`` gives to Java's clients and to kafka-python."""

from __future__ import annotations

import kafka
import pytest

from tests.interop.java import JavaSide, as_text
from tidelog.testing import Broker, allow

pytestmark = pytest.mark.interop

LIMIT_MS = 30_000


def through_java(java: JavaSide, settings: dict[str, str], topic: str, offset: int) -> None:
    """Writes a record and reads it."""
    config = {name: text for name, text in settings.items() if name != "bootstrap.servers"}
    place = {"bootstrap": settings["bootstrap.servers"], "topic": topic, "config": config}
    record = {"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}
    assert java.ask("produce", records=[record], **place)["offsets"] == [offset]
    found = java.ask("consume", partitions=[0], count=1, timeout_ms=LIMIT_MS, **place, **{"from": "beginning"})
    assert [each["value"] for each in found["records"]][:1] == [as_text(b"v")]


def test_java_and_kafka_python_take_the_settings_as_they_are(java: JavaSide) -> None:
    acls = [allow("shop", "all", topic="orders"), allow("shop", "all", group="*")]
    with Broker(tls=True, users={"shop": 's3"cr\\et'}, acls=acls) as broker:
        for number, mechanism in enumerate(("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")):
            through_java(java, broker.access.java_settings("shop", mechanism), "orders", 2 * number)
            producer = kafka.KafkaProducer(**broker.access.python_settings("shop", mechanism))
            assert producer.send("orders", b"v").get(30).offset == 2 * number + 1
            producer.close(5)


def test_with_mutual_tls_they_show_the_certificate(java: JavaSide) -> None:
    with Broker(tls="mutual", acls=[allow("CN=shop", "all", topic="orders")]) as broker:
        through_java(java, broker.access.java_settings("shop"), "orders", 0)
        producer = kafka.KafkaProducer(**broker.access.python_settings("shop"))
        assert producer.send("orders", b"v").get(30).offset == 1
        producer.close(5)
