"""Who holds readers of committed records back, as ``consumer-groups --describe`` tells."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.unit.cli.tools.test_transactions import hang, transactional
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.tools.consumer_groups import command
from tidelog.cli.tools.held_offsets import Holder, holders
from tidelog.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        made.create_topic("orders", 3)
        made.produce("orders", "a", "b", partition=0)
        yield made


@pytest.fixture
def held(broker: Broker) -> Iterator[Producer]:
    """A transaction that is open in partition 0 from offset 2 on."""
    producer = transactional(broker, "payments")
    producer.produce("orders", "c", partition=0)
    producer.flush(20)
    yield producer
    producer.purge()


def described(broker: Broker, *words: str) -> tuple[str, str]:
    """stdout and stderr."""
    done = CliRunner().invoke(command, ["--bootstrap-server", broker.bootstrap_servers, "--describe", "--group", "g", *words])
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


@pytest.fixture
def group(broker: Broker) -> None:
    """A group with an offset in partition 0."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


def test_without_an_open_transaction_nobody_holds_anything(broker: Broker, group: None) -> None:
    with AdminSession(broker.bootstrap_servers) as session:
        assert holders(session, {("orders", 0): 2, ("orders", 1): 0}) == {}
    assert "wait at offset" not in described(broker)[1]


def test_the_transaction_and_its_producer_are_named(broker: Broker, held: Producer) -> None:
    with AdminSession(broker.bootstrap_servers) as session:
        found = holders(session, {("orders", 0): 3, ("orders", 1): 0})
    holder = found.pop(("orders", 0))
    assert found == {}
    assert (holder.offset, holder.transactional_id) == (2, "payments")


def test_one_that_no_coordinator_knows_has_no_name(broker: Broker) -> None:
    hang(broker)
    with AdminSession(broker.bootstrap_servers) as session:
        assert holders(session, {("orders", 2): 1}) == {("orders", 2): Holder(0, None, 4711, 3)}


def test_describe_says_so_below_the_table_whose_columns_stay(broker: Broker, group: None, held: Producer) -> None:
    table, told = described(broker)
    assert "held" not in table.lower()
    assert "Partition orders-0: readers of committed records wait at offset 2 for transaction payments (producer " in told
    (row,) = json.loads(described(broker, "--output", "json")[0])
    assert row["held_by"]["transactional_id"] == "payments"
    held.commit_transaction(20)
    assert "wait at offset" not in described(broker)[1]
