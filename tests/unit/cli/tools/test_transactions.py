"""The tool's flags, and what it says and does on a node with an open, a finished and a hanging transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaException, Producer

from tidelog.cli.tools.transactions import command
from tidelog.model.errors import ErrorCode
from tidelog.records.builder import RecordData, build_batch
from tidelog.storage.verification_guard import NOT_REQUIRED
from tidelog.testing import Broker

LONG_AGO_MS = 1_000_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        made.create_topic("orders", 3)
        done = transactional(made, "done")
        done.produce("orders", "a", partition=0)
        done.commit_transaction(20)
        open_one = transactional(made, "payments")
        for partition in (0, 1):
            open_one.produce("orders", "b", partition=partition)
        open_one.flush(20)
        yield made
        open_one.purge()


def transactional(broker: Broker, name: str) -> Producer:
    """A producer with a transaction begun."""
    made = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "transaction.timeout.ms": 600_000})
    made.init_transactions(20)
    made.begin_transaction()
    return made


def hang(broker: Broker, partition: int = 2) -> None:
    """An open transaction that no coordinator knows, as a bug or a lost coordinator would leave it."""
    record = RecordData(b"k", b"v", LONG_AGO_MS, ())
    batch = build_batch([record], producer_id=4711, producer_epoch=3, base_sequence=0, transactional=True)
    where = broker._host._partition("orders", partition)
    assert where.log is not None

    def append() -> None:
        result = where.log.append_as_leader(memoryview(batch), where.leader_epoch, LONG_AGO_MS, proof=NOT_REQUIRED)
        assert result.error is ErrorCode.NONE
        where.log.update_high_watermark(result.last_offset + 1)

    broker._host.thread.call(append)


def run(broker: Broker, *words: str) -> Result:
    return CliRunner().invoke(command, ["--bootstrap-server", broker.bootstrap_servers, *words])


def table(done: Result) -> list[dict[str, str]]:
    """The rows, with the titles of their columns."""
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len({line.count("\t") for line in lines}) == 1
    cells = [[cell.strip() for cell in line.split("\t")[:-1]] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["abort", "--topic", "t", "--partition", "0"], "either with --start-offset or with --producer-id"),
        (["abort", "--topic", "t", "--partition", "0", "--producer-id", "1"], "--producer-epoch and --coordinator-epoch"),
        (["find-hanging"], "searches one topic or one broker"),
        (["find-hanging", "--partition", "0"], "within a topic: add --topic"),
        (["describe"], "--transactional-id"),
    ],
)
def test_flags_that_make_no_command_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, ["--bootstrap-server", "b:1", *words])
    assert done.exit_code == 2
    assert message in done.output


def test_the_brokers_are_required() -> None:
    assert "[bootstrap-server]" in CliRunner().invoke(command, ["list"]).output


def test_list_shows_who_coordinates_what_in_which_state(broker: Broker) -> None:
    rows = {row["TransactionalId"]: row for row in table(run(broker, "list"))}
    assert rows["done"]["TransactionState"] == "CompleteCommit"
    assert rows["payments"]["TransactionState"] == "Ongoing"
    assert rows["payments"]["Coordinator"] == "1"


def test_list_filters_by_duration_and_pattern(broker: Broker) -> None:
    assert [row["TransactionalId"] for row in table(run(broker, "list", "--transactional-id-pattern", "pay.*"))] == ["payments"]
    assert table(run(broker, "list", "--duration-filter", "3600000")) == []
    assert "payments" in [row["TransactionalId"] for row in table(run(broker, "list", "--duration-filter", "0"))]
    bad = run(broker, "list", "--transactional-id-pattern", "(")
    assert (bad.exit_code, "INVALID_REGULAR_EXPRESSION" in bad.stderr) == (1, True)


def test_describe_shows_an_open_transaction_and_its_partitions(broker: Broker) -> None:
    (row,) = table(run(broker, "describe", "--transactional-id", "payments"))
    assert (row["TransactionState"], row["TransactionTimeoutMs"]) == ("Ongoing", "600000")
    assert row["TopicPartitions"] == "orders-0,orders-1"
    assert int(row["TransactionDurationMs"]) >= 0
    (row,) = table(run(broker, "describe", "--transactional-id", "done"))
    assert (row["TransactionState"], row["TopicPartitions"]) == ("CompleteCommit", "")
    missing = run(broker, "describe", "--transactional-id", "nobody")
    assert (missing.exit_code, "TRANSACTIONAL_ID_NOT_FOUND" in missing.stderr) == (1, True)


def test_describe_producers_shows_where_a_transaction_begins(broker: Broker) -> None:
    rows = table(run(broker, "describe-producers", "--topic", "orders", "--partition", "0"))
    assert sorted(row["CurrentTransactionStartOffset"] for row in rows) == ["2", "None"]
    missing = run(broker, "describe-producers", "--topic", "orders", "--partition", "9")
    assert (missing.exit_code, "orders-9" in missing.stderr) == (1, True)


def test_json_is_for_programs(broker: Broker) -> None:
    (row,) = json.loads(run(broker, "describe", "--transactional-id", "payments", "--output", "json").stdout)
    assert row["partitions"] == [["orders", 0], ["orders", 1]]
    assert [each["state"] for each in json.loads(run(broker, "list", "--output", "json").stdout)].count("Ongoing") == 1


def test_a_hanging_transaction_is_found_and_aborted(broker: Broker) -> None:
    assert table(run(broker, "find-hanging", "--topic", "orders", "--max-transaction-timeout", "0")) == []
    hang(broker)
    (row,) = table(run(broker, "find-hanging", "--topic", "orders"))
    assert (row["Partition"], row["ProducerId"], row["ProducerEpoch"], row["StartOffset"]) == ("2", "4711", "3", "0")
    assert table(run(broker, "find-hanging", "--broker-id", "1"))[0]["ProducerId"] == "4711"
    wrong = run(broker, "abort", "--topic", "orders", "--partition", "2", "--start-offset", "7")
    assert (wrong.exit_code, "starts at offset 7" in wrong.stderr) == (1, True)
    assert run(broker, "abort", "--topic", "orders", "--partition", "2", "--start-offset", "0").exit_code == 0
    assert table(run(broker, "find-hanging", "--topic", "orders")) == []


def test_a_transaction_is_aborted_by_producer_for_old_brokers(broker: Broker) -> None:
    hang(broker)
    words = ["--producer-id", "4711", "--producer-epoch", "3", "--coordinator-epoch", "0"]
    assert run(broker, "abort", "--topic", "orders", "--partition", "2", *words).exit_code == 0
    assert table(run(broker, "find-hanging", "--topic", "orders")) == []


@pytest.mark.parametrize("words", [("force-terminate", "--transactional-id"), ("forceTerminateTransaction", "--transactionalId")])
def test_force_terminate_fences_the_producer_and_ends_its_transaction(broker: Broker, words: tuple[str, str]) -> None:
    name = f"to-be-ended-{words[0]}"
    producer = transactional(broker, name)
    producer.produce("orders", "c", partition=1)
    producer.flush(20)
    done = run(broker, *words, name)
    assert done.exit_code == 0, done.output
    (row,) = table(run(broker, "describe", "--transactional-id", name))
    assert row["CurrentTransactionStartTimeMs"] == "None"
    with pytest.raises(KafkaException):
        producer.commit_transaction(20)
    assert run(broker, *words, "nobody").exit_code == 1
