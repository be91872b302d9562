"""Transactions on a stand-in for librdkafka's producer: the order of its calls, and what its errors mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.dead_letters.samples import letter
from tidelog.dead_letters.planning import Replay
from tidelog.dead_letters.transactions import Aborted, Refused, ReplayFailed, Transactions, producer_settings

ID = b"i" * 16


class Placed:
    def __init__(self, partition: int, offset: int) -> None:
        self._at = partition, offset

    def partition(self) -> int:
        return self._at[0]

    def offset(self) -> int:
        return self._at[1]


class Producer:
    """``fails``: by the name of a call, the errors of its first calls; by a value, the error of that record."""

    def __init__(self, **fails: list[KafkaError]) -> None:
        self.calls: list[str] = []
        self.records: list[tuple[str, int | None, bytes | None, bytes | None]] = []
        self.values: dict[bytes, KafkaError] = {}
        self._fails = fails
        self._waiting: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: object) -> None:
            self.calls.append(name)
            if self._fails.get(name):
                raise KafkaException(self._fails[name].pop(0))

        return call

    def produce(self, topic: str, value: Any, *, key: Any, headers: Any, on_delivery: Any, partition: int | None = None) -> None:
        self.records.append((topic, partition, key, value))
        at = len(self.records)
        self._waiting.append(lambda: on_delivery(self.values.get(value), Placed(partition or 0, 100 + at)))

    def flush(self, timeout: float) -> int:
        self.calls.append("flush")
        waiting, self._waiting = self._waiting, []
        for report in waiting:
            report()
        return 0


def replay(offset: int, value: bytes = b"v") -> Replay:
    return Replay(letter(source=("jobs", 1, offset)), ID, 1, b"k", value, (("h", b"1"),), 1)


def begun(producer: Producer) -> Transactions:
    return Transactions(producer, "dlq.replayed", lambda: 77)


def test_records_and_their_journal_are_one_transaction() -> None:
    producer = Producer()
    done = begun(producer).write([replay(40), replay(41)])
    assert producer.calls == ["init_transactions", "begin_transaction", "flush", "flush", "commit_transaction"]
    assert [(topic, partition) for topic, partition, _, _ in producer.records] == [("jobs", 1)] * 2 + [("dlq.replayed", None)] * 2
    assert [(each.source.offset, each.partition, each.offset, each.at_ms) for each in done] == [
        (40, 1, 101, 77),
        (41, 1, 102, 77),
    ]
    assert json.loads(producer.records[2][3] or b"") == {"count": 1, "partition": 1, "offset": 101, "at_ms": 77}


@pytest.mark.parametrize(
    ("code", "raised", "aborts"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, Refused, 1),
        (KafkaError._MSG_TIMED_OUT, Aborted, 1),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ReplayFailed, 0),
        (KafkaError._FENCED, ReplayFailed, 0),
    ],
)
def test_a_record_that_is_not_written_ends_the_transaction(code: int, raised: type[Exception], aborts: int) -> None:
    producer = Producer()
    producer.values[b"bad"] = KafkaError(code)
    transactions = begun(producer)
    with pytest.raises(raised):
        transactions.write([replay(40), replay(41, b"bad")])
    assert producer.calls.count("abort_transaction") == aborts
    assert [topic for topic, *_ in producer.records] == ["jobs", "jobs"], "no journal of what was not written"
    transactions.close()
    assert producer.calls.count("abort_transaction") == 1
    assert "commit_transaction" not in producer.calls


def test_a_commit_that_must_be_aborted_may_be_tried_again() -> None:
    error = KafkaError(KafkaError.INVALID_TXN_STATE, "late", False, False, True)
    producer = Producer(commit_transaction=[error])
    with pytest.raises(Aborted, match="late"):
        begun(producer).write([replay(40)])
    assert producer.calls[-1] == "abort_transaction"


def test_what_passes_is_repeated() -> None:
    passing = KafkaError(KafkaError._TIMED_OUT, "slow", False, True, False)
    producer = Producer(init_transactions=[passing], commit_transaction=[passing, passing])
    assert len(begun(producer).write([replay(40)])) == 1
    assert producer.calls.count("commit_transaction") == 3


def test_another_run_takes_over() -> None:
    fenced = KafkaError(KafkaError._FENCED, "fenced", True, False, False)
    with pytest.raises(ReplayFailed, match="Another replay"):
        begun(Producer(begin_transaction=[fenced])).write([replay(40)])


def test_the_users_settings_count_except_those_that_make_it_exact() -> None:
    own = {"compression.type": "lz4", "acks": "1", "enable.idempotence": "false", "group.id": "g"}
    found = producer_settings(own, "a:1", "tidelog-replay-d")
    assert found["compression.type"] == "lz4"
    assert not found.keys() & {"acks", "enable.idempotence", "group.id"}
    assert (found["transactional.id"], found["bootstrap.servers"]) == ("tidelog-replay-d", "a:1")
    with pytest.raises(ReplayFailed, match=r"transactional\.id"):
        producer_settings({"transactional.id": "mine"}, "a:1", "tidelog-replay-d")
