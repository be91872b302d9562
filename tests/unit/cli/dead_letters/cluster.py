"""A node with a topic of jobs, and a dead-letter topic that names some of them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from tests.unit.dead_letters.samples import headers
from tidelog.cli.tools.share_groups import command
from tidelog.cli.tools.topics import command as topics

DLQ = "dlq.jobs"


def make_topics(address: str, topic: str = "jobs") -> None:
    runner = CliRunner()
    for name, count in ((topic, 2), (DLQ, 1)):
        words = ["--bootstrap-server", address, "--create", "--topic", name, "--partitions", str(count)]
        assert runner.invoke(topics, words).exit_code == 0


def give_up(address: str, offsets: range, *, topic: str = "jobs", copy: bool = True) -> None:
    """Jobs in partition 1, and a dead letter for each."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for offset in offsets:
        producer.produce(topic, f"job {offset}", key=f"k{offset}", partition=1, headers={"trace": str(offset)})
    assert producer.flush(30) == 0
    for offset in offsets:
        found = list(headers(topic, 1, offset))
        kept = (f"job {offset}", f"k{offset}") if copy else (None, None)
        producer.produce(DLQ, kept[0], key=kept[1], headers=found)
    assert producer.flush(30) == 0


def run(address: str, *words: str) -> Any:
    """What the command prints as JSON."""
    done = CliRunner().invoke(command, ["dead-letters", *words, "--bootstrap-server", address, "--output", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def committed(
    address: str, topic: str, partition: int = 1, isolation: str = "read_committed"
) -> list[tuple[str, dict[str, str]]]:
    """Value and headers of the records of a partition, without ``isolation`` of those that are committed."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": address, "group.id": "checks", "isolation.level": isolation}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            break
        value = message.value()
        found.append(("" if value is None else value.decode(), {name: text.decode() for name, text in message.headers() or ()}))
    consumer.close()
    return found
