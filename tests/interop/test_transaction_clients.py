"""Transactions as Apache Kafka's clients, librdkafka and aiokafka use them, and on a directory that two brokers share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from tests.interop.dump import dump
from tests.interop.java import JavaSide, as_bytes
from tests.interop.nodes import FEATURES, Node, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
LEVELS = {"before version 2": 0, "version 2": 2}
Found = dict[int, list[tuple[int, str]]]
STEPS = [("commit", 5), ("abort", 4), ("commit", 1), ("abort", 1), ("commit", 30)]


def values(number: int, count: int) -> list[tuple[int, str]]:
    return [(n % 2, f"{number}-{n}") for n in range(count)]


def read(node: Node, topic: str, level: str, wanted: int | None = None) -> Found:
    """(offset, value) by partition; without ``wanted``, as far as the level lets one see now."""
    settings = {"bootstrap.servers": node.bootstrap, "group.id": "reads", "isolation.level": level, "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(settings)
    partitions = [confluent_kafka.TopicPartition(topic, number, 0) for number in (0, 1)]
    found: Found = {0: [], 1: []}
    ended: set[int] = set()
    try:
        consumer.assign(partitions)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found[message.partition()].append((message.offset(), message.value().decode()))
            elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            if len(ended) == 2 and (wanted is None or sum(map(len, found.values())) >= wanted):
                return found
    finally:
        consumer.close()
    raise AssertionError(f"30 s were not enough to read {topic}: {found}")


def java_read(java: JavaSide, node: Node, topic: str, level: str, count: int) -> Found:
    """Apache Kafka's consumer reads the same records."""
    answer = java.ask(
        "consume",
        bootstrap=node.bootstrap,
        topic=topic,
        partitions=[0, 1],
        count=count,
        timeout_ms=30_000,
        **{"from": "beginning"},
        config={"isolation.level": level},
    )
    found: Found = {0: [], 1: []}
    for record in answer["records"]:
        found[record["partition"]].append((record["offset"], (as_bytes(record["value"]) or b"").decode()))
    return found


def create(node: Node, java: JavaSide, *topics: str, partitions: int = 2) -> None:
    for topic in topics:
        java.ask("create", bootstrap=node.bootstrap, topic=topic, partitions=partitions, configs={})


def transact(java: JavaSide, node: Node, name: str, topic: str, *steps: tuple[str, list[tuple[int, str]]], **config: str) -> None:
    java.ask(
        "transact",
        bootstrap=node.bootstrap,
        name=name,
        topic=topic,
        steps=[{"end": end, "values": step} for end, step in steps],
        config=config,
    )


def texts(found: Found) -> list[str]:
    return sorted(value for part in found.values() for _, value in part)


@pytest.fixture(scope="module", params=LEVELS.values(), ids=LEVELS)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Node]:
    """A node whose cluster is at one of the transaction versions."""
    kind = request.config.getoption("--broker")
    features = {**FEATURES, "transaction.version": request.param, "group.version": 1}
    with running(Node(kind, tmp_path_factory.mktemp("node"), java, PROPERTIES, features)) as started:
        yield started
        started.stop()


def test_committed_records_are_read_and_aborted_ones_are_not(served: Node, java: JavaSide) -> None:
    create(served, java, "levels")
    transact(java, served, "levels", "levels", *[(end, values(n, count)) for n, (end, count) in enumerate(STEPS)])
    committed = read(served, "levels", "read_committed", 36)
    everything = read(served, "levels", "read_uncommitted", 41)
    assert texts(committed) == sorted(
        value for n, (end, count) in enumerate(STEPS) if end == "commit" for _, value in values(n, count)
    )
    assert texts(everything) == sorted(value for n, (_, count) in enumerate(STEPS) for _, value in values(n, count))
    assert java_read(java, served, "levels", "read_committed", 36) == committed
    assert java_read(java, served, "levels", "read_uncommitted", 41) == everything


def test_an_open_transaction_holds_readers_back_until_its_producer_comes_again(served: Node, java: JavaSide) -> None:
    create(served, java, "held")
    transact(java, served, "held", "held", ("commit", values(0, 2)), ("open", values(1, 4)))
    transact(java, served, "other", "held", ("commit", values(2, 2)))
    assert texts(read(served, "held", "read_committed", 2)) == ["0-0", "0-1"]
    transact(java, served, "held", "held", ("commit", values(3, 2)))
    assert texts(read(served, "held", "read_committed", 6)) == ["0-0", "0-1", "2-0", "2-1", "3-0", "3-1"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_records_are_passed_on_exactly_once_with_the_offsets_of_their_group(served: Node, java: JavaSide, protocol: str) -> None:
    source, target = f"from-{protocol}", f"to-{protocol}"
    create(served, java, source, target)
    transact(
        java, served, f"fill-{protocol}", source, ("commit", values(0, 60)), ("abort", values(1, 9)), ("commit", values(2, 40))
    )
    answer = java.ask(
        "pass_on",
        bootstrap=served.bootstrap,
        name=f"pass-{protocol}",
        group=f"group-{protocol}",
        to=target,
        count=100,
        timeout_ms=60_000,
        **{"from": source},
        consumer={"bootstrap": served.bootstrap, "config": {"group.protocol": protocol}},
    )
    assert (answer["errors"], answer["passed"]) == ([], 100)
    assert answer["transactions"] > 10
    assert texts(read(served, target, "read_committed", 100)) == texts(read(served, source, "read_committed", 100))
    consumer = confluent_kafka.Consumer({"bootstrap.servers": served.bootstrap, "group.id": f"group-{protocol}"})
    ends = [confluent_kafka.TopicPartition(source, number) for number in (0, 1)]
    for partition in consumer.committed(ends, 10):
        last = read(served, source, "read_committed", 100)[partition.partition][-1][0]
        assert partition.offset == last + 1
    consumer.close()


def test_librdkafka_commits_aborts_and_sends_offsets(served: Node, java: JavaSide) -> None:
    create(served, java, "rd-from", "rd-to")
    transact(java, served, "rd-fill", "rd-from", ("commit", values(0, 20)))
    producer = confluent_kafka.Producer({"bootstrap.servers": served.bootstrap, "transactional.id": "rd"})
    producer.init_transactions(30)
    settings = {
        "bootstrap.servers": served.bootstrap,
        "group.id": "rd",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["rd-from"])
    seen: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(seen) < 20 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            seen.append(message.value())
    for commit in (False, True):
        producer.begin_transaction()
        for value in seen:
            producer.produce("rd-to", value)
        producer.flush()
        producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
            partitions = consumer.committed([confluent_kafka.TopicPartition("rd-from", n) for n in (0, 1)], 10)
            assert [partition.offset for partition in partitions] == [confluent_kafka.OFFSET_INVALID] * 2
    assert texts(read(served, "rd-to", "read_committed", 20)) == sorted(value.decode() for value in seen)
    assert len(texts(read(served, "rd-to", "read_uncommitted", 40))) == 40
    partitions = consumer.committed([confluent_kafka.TopicPartition("rd-from", n) for n in (0, 1)], 10)
    assert sum(partition.offset for partition in partitions) >= 20
    consumer.close()


def test_aiokafka_commits_and_aborts(served: Node, java: JavaSide) -> None:
    create(served, java, "aio")

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=served.bootstrap, transactional_id="aio")
        await producer.start()
        try:
            for number, commit in enumerate((True, False, True)):
                await producer.begin_transaction()
                for partition, value in values(number, 4):
                    await producer.send_and_wait("aio", value.encode(), partition=partition)
                offsets = {TopicPartition("aio", 0): number + 1}
                await producer.send_offsets_to_transaction(offsets, "aio-group")
                await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(write())
    committed = read(served, "aio", "read_committed", 8)
    assert texts(committed) == sorted(value for number in (0, 2) for _, value in values(number, 4))
    assert len(texts(read(served, "aio", "read_uncommitted", 12))) == 12


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_transactions_go_on_when_the_other_broker_takes_over(tmp_path: Path, java: JavaSide, level: int, end: str) -> None:
    """Committed, aborted and open transactions written by one are read alike by the other, and ended by it."""
    features = {**FEATURES, "transaction.version": level, "group.version": 1}
    slow = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}
    with running(Node("apache", tmp_path, java, {**PROPERTIES, **slow}, features)) as node:
        create(node, java, "shared")
        wanted: list[str] = []
        for turn, kind in enumerate(("apache", "tidelog", "apache")):
            base = 10 * turn
            transact(
                java,
                node,
                "p",
                "shared",
                ("commit", values(base, 6)),
                ("abort", values(base + 1, 5)),
                ("commit", values(base + 2, 3)),
            )
            transact(java, node, "q", "shared", ("open", values(base + 3, 4)))
            transact(java, node, "p", "shared", ("commit", values(base + 4, 2)))
            wanted += [value for n, count in ((base, 6), (base + 2, 3)) for _, value in values(n, count)]
            before = read(node, "shared", "read_committed", len(wanted))
            everything = read(node, "shared", "read_uncommitted")
            assert texts(before) == sorted(wanted), kind
            if end == "stopped":
                node.stop()
                assert dump(java, node.data).trouble == ()
            else:
                node.kill()
            node.start("tidelog" if kind == "apache" else "apache")
            assert read(node, "shared", "read_committed", len(wanted)) == before
            assert read(node, "shared", "read_uncommitted") == everything
            transact(java, node, "q", "shared", ("commit", values(base + 5, 1)))
            wanted += [value for n, count in ((base + 4, 2), (base + 5, 1)) for _, value in values(n, count)]
            assert texts(read(node, "shared", "read_committed", len(wanted))) == sorted(wanted)
        node.stop()
