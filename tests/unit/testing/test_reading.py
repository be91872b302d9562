"""What consumers of each isolation level would see of a log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tidelog.records.batch import read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.storage.index import AbortedTransaction
from tidelog.testing import Broker
from tidelog.testing.reading import is_aborted


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("t")
        yield running


def in_transaction(broker: Broker, name: str, *values: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    for value in values:
        producer.produce("t", value=value)
    producer.flush(20)
    return producer


def values(broker: Broker, *, committed: bool) -> list[str | None]:
    return [message.text for message in broker.messages("t", committed=committed)]


def test_aborted_records_are_seen_by_uncommitted_readers_only(broker: Broker) -> None:
    in_transaction(broker, "one", "a", "b").abort_transaction(20)
    in_transaction(broker, "two", "c").commit_transaction(20)
    broker.produce("t", "d")
    assert values(broker, committed=False) == ["a", "b", "c", "d"]
    assert values(broker, committed=True) == ["c", "d"]


def test_committed_readers_stop_at_an_open_transaction(broker: Broker) -> None:
    broker.produce("t", "before")
    open_ = in_transaction(broker, "one", "a")
    broker.produce("t", "after")
    assert values(broker, committed=False) == ["before", "a", "after"]
    assert values(broker, committed=True) == ["before"]
    open_.commit_transaction(20)
    assert values(broker, committed=True) == ["before", "a", "after"]


def test_an_aborted_transaction_is_one_of_its_producer_within_its_offsets() -> None:
    def header(offset: int, producer_id: int, transactional: bool = True) -> object:
        batch = build_batch(
            [RecordData(None, b"v", 1)],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=transactional,
        )
        return read_header(batch)

    aborted = [AbortedTransaction(7, 4, 6, 7)]
    assert [is_aborted(header(offset, 7), aborted) for offset in (3, 4, 6, 7)] == [False, True, True, False]  # type: ignore[arg-type]
    assert not is_aborted(header(5, 8), aborted)  # type: ignore[arg-type]
    assert not is_aborted(header(5, 7, transactional=False), aborted)  # type: ignore[arg-type]
