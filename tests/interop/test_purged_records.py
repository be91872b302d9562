"""A record that librdkafka 2.16.1 loses, on Apache Kafka as on tidelog; why the transactional workload makes new producers.

The answer to a record is lost with its connection, ``abort_transaction`` purges the record from the queue, and the next
transaction's first record gets the sequence of the purged one. The broker has that already: it answers with the old offset, as
for any repetition. When this fails with a newer librdkafka, ``tests/transactions/worker.py`` needs no Restart after a purge.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.faults.proxy import TO_CLIENT, Proxy
from tests.interop.clients import until
from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running

pytestmark = pytest.mark.interop
TOPIC = "purged"


@pytest.mark.parametrize("kind", ["tidelog", "apache"])
def test_a_purged_record_takes_the_next_ones_place(kind: str, home: Path, java: JavaSide) -> None:
    node = Node(kind, home, java)
    with Proxy(node.ports[0]) as proxy:
        node.properties = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        with running(node):
            node.create(TOPIC)
            told = lose_an_answer(proxy, f"127.0.0.1:{proxy.port}")
            assert told["purged"] is None, "the client gave it up"
            assert told["next"] is not None, "the client was told that this is written"
            found = read(f"127.0.0.1:{proxy.port}")
            assert found[told["next"]] == b"purged"
            assert b"next" not in found.values()


def lose_an_answer(proxy: Proxy, bootstrap: str) -> dict[str, int | None]:
    """The acknowledged offset of each record."""
    told: dict[str, int | None] = {}

    def note(error: Any, message: Any) -> None:
        told[message.value().decode()] = None if error else message.offset()

    quick = {"linger.ms": 1, "socket.timeout.ms": 4000, "log_level": 0, "reconnect.backoff.ms": 20}
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "p", **quick})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(TOPIC, "first", partition=0, on_delivery=note)
    assert producer.flush(20) == 0
    proxy.cut(TO_CLIENT)
    before = proxy.passed_bytes["to the broker"]
    producer.produce(TOPIC, "purged", partition=0, on_delivery=note)
    for _ in until(lambda: proxy.passed_bytes["to the broker"] > before, "the record to be on its way"):
        producer.poll(0.01)
    time.sleep(0.5)  # written; nobody may be asked, for the answers are cut off
    proxy.drop()
    proxy.refuse()
    producer.poll(0.5)
    aborting = threading.Thread(target=producer.abort_transaction, args=(60,))
    aborting.start()
    for _ in until(lambda: "purged" in told, "the record to be purged"):
        time.sleep(0.01)
    proxy.heal()
    aborting.join()
    producer.begin_transaction()
    producer.produce(TOPIC, "next", partition=0, on_delivery=note)
    producer.commit_transaction(60)
    return told


def read(bootstrap: str) -> dict[int, bytes]:
    """All that is in the partition."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": "read_uncommitted", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: dict[int, bytes] = {}
    try:
        while (message := consumer.poll(20)) is not None and message.error() is None:
            found[message.offset()] = message.value()
    finally:
        consumer.close()
    return found
