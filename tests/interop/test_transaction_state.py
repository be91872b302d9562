"""Transactions across kill -9 of the node, and what Apache Kafka's DumpLogSegments then reads in ``__transaction_state``."""

from __future__ import annotations

import re
from pathlib import Path

import confluent_kafka
import pytest

from tests.interop.clients import until
from tests.interop.dump import DUMP
from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running
from tidelog.coordinator.transaction.state import NAMES, TransactionState

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
RECORD = re.compile(r'"transactionalId":"(?P<id>[^"]+)".*"transactionStatus":(?P<state>\d+)')


def producer(node: Node, name: str, timeout_ms: int = 60_000) -> confluent_kafka.Producer:
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    made.init_transactions(30)
    return made


def write(one: confluent_kafka.Producer, *texts: str) -> None:
    one.begin_transaction()
    for text in texts:
        one.produce("t", text, partition=0)
    one.flush(30)


def read(node: Node, level: str, count: int) -> list[str]:
    """All that this level shows, which are ``count`` records."""
    settings = {"bootstrap.servers": node.bootstrap, "group.id": "r", "isolation.level": level, "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found: list[str] = []
    try:
        for _ in until(lambda: len(found) >= count, f"{count} records at {level}"):
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message.value().decode())
    finally:
        consumer.close()
    return found


def states(java: JavaSide, node: Node) -> dict[str, list[str]]:
    """The states that each transactional id went through, as Kafka's tool reads them in the files of a stopped node."""
    files = sorted(node.data.glob("__transaction_state-*/*.log"))
    answer = java.tool(DUMP, "--transaction-log-decoder", "--files", ",".join(map(str, files)))
    assert answer["status"] == 0 and not answer["err"].strip(), answer
    found: dict[str, list[str]] = {}
    for line in answer["out"].splitlines():
        if record := RECORD.search(line):
            found.setdefault(record["id"], []).append(NAMES[TransactionState(int(record["state"]))])
    return found


def test_transactions_outlive_kill_9_of_the_node_and_those_of_dead_producers_are_aborted(tmp_path: Path, java: JavaSide) -> None:
    with running(Node("tidelog", tmp_path, java, PROPERTIES)) as node:
        node.create("t")
        done, gone, lasting = producer(node, "done"), producer(node, "gone", 2_000), producer(node, "lasting")
        write(done, "committed")
        done.commit_transaction(30)
        write(done, "aborted")
        done.abort_transaction(30)
        write(lasting, "open across the kill")
        write(gone, "of a producer that never came back")
        node.kill()
        node.start()
        lasting.produce("t", "written after it", partition=0)
        lasting.commit_transaction(60)
        write(lasting, "one more")
        lasting.commit_transaction(60)
        wanted = ["committed", "open across the kill", "written after it", "one more"]
        assert read(node, "read_committed", len(wanted)) == wanted
        assert len(read(node, "read_uncommitted", len(wanted) + 2)) == len(wanted) + 2
        with pytest.raises(confluent_kafka.KafkaException):
            gone.commit_transaction(30)
        node.stop()
        assert states(java, node) == {
            "done": ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "Ongoing", "PrepareAbort", "CompleteAbort"],
            "gone": ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort"],
            "lasting": ["Empty", *["Ongoing", "PrepareCommit", "CompleteCommit"] * 2],
        }
