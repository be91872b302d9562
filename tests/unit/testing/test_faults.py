"""Faults are met once each, in order, by the requests they were planned for, and by no others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.unit.broker.apis.live import Talk
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.testing import Broker, Faults


def produce(broker: Broker, value: str, **settings: object) -> list[object]:
    """The delivery errors, None for a success."""
    told: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, **settings})
    producer.produce("t", value=value, on_delivery=lambda error, _: told.append(error and error.code()))
    producer.flush(15)
    return told


def test_a_refused_produce_is_not_appended_and_the_retry_is() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.faults.refuse("PRODUCE", "NOT_LEADER_OR_FOLLOWER", times=2)
        assert produce(broker, "a") == [None]
        assert broker.faults.pending == 0
        assert [message.text for message in broker.messages("t")] == ["a"]


def test_an_error_that_is_not_retriable_reaches_the_application() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.faults.refuse("PRODUCE", "TOPIC_AUTHORIZATION_FAILED")
        assert produce(broker, "a") == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
        assert broker.messages("t") == []


def test_a_dropped_connection_is_opened_again_by_the_client() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.faults.drop("PRODUCE")
        assert produce(broker, "a") == [None]
        assert [message.text for message in broker.messages("t")] == ["a"]


def test_a_delayed_request_runs_into_the_clients_timeout() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.faults.delay("PRODUCE", 3.0)
        slow = produce(broker, "a", **{"request.timeout.ms": 300, "message.timeout.ms": 1000, "acks": 1, "retries": 0})
        assert slow == [KafkaError._MSG_TIMED_OUT]


def test_faults_of_one_api_leave_the_others_alone() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        broker.faults.refuse("CREATE_TOPICS", "POLICY_VIOLATION")
        assert produce(broker, "a") == [None]
        assert broker.faults.pending == 1
        broker.faults.clear()
        assert broker.faults.pending == 0


@pytest.mark.parametrize("error", ["COORDINATOR_NOT_AVAILABLE", "GROUP_AUTHORIZATION_FAILED"])
def test_group_requests_can_be_refused(error: str) -> None:
    with Broker() as broker:
        broker.produce("t", "a")
        broker.faults.refuse("LIST_GROUPS", error)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        listed = admin.list_consumer_groups(request_timeout=10).result()
        assert [problem.name() for problem in listed.errors] == [error]


def transactional(broker: Broker, **settings: object) -> Producer:
    """A producer in a transaction with one record."""
    quick = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "transactional.id": "payments"}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **quick, **settings})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("t", value="a", partition=0)
    assert producer.flush(20) == 0
    return producer


def committed(broker: Broker, count: int) -> list[bytes | None]:
    """What a reader of committed records gets; ``count`` records are waited for."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("t", 0, 0)])
    try:
        return [message.value() for message in consumer.consume(count, 20)]
    finally:
        consumer.close()


def stable_end(broker: Broker) -> int:
    """The last stable offset of t-0."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    asked = admin.list_offsets({TopicPartition("t", 0): OffsetSpec.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)
    return int(next(iter(asked.values())).result(20).offset)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        made.create_topic("t")
        yield made


def test_a_held_end_of_a_transaction_leaves_it_open_until_it_is_released(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.hold("END_TXN")
    done = threading.Thread(target=producer.commit_transaction, args=(30,))
    done.start()
    broker.faults.wait_held("END_TXN")
    assert stable_end(broker) == 0
    assert broker.faults.release("END_TXN") == 1
    done.join(30)
    assert committed(broker, 1) == [b"a"]


def test_an_end_that_was_served_without_an_answer_is_asked_for_again_and_happens_once(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.lose_answer("END_TXN", times=2)
    producer.commit_transaction(30)
    assert broker.faults.pending == 0
    assert committed(broker, 1) == [b"a"]
    assert stable_end(broker) == 2, "one record, one marker"


def test_an_end_that_is_dropped_is_asked_for_again(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.drop("END_TXN")
    producer.commit_transaction(30)
    assert committed(broker, 1) == [b"a"]


def test_an_end_that_arrives_twice_at_once_happens_once(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.repeat("END_TXN")
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce("t", value="b", partition=0)
    producer.commit_transaction(30)
    assert committed(broker, 1) == [b"b"]


def test_a_late_copy_of_an_end_hits_the_next_transaction_of_a_client_with_the_older_protocol(broker: Broker) -> None:
    """What KIP-890 part 2 is for: librdkafka sends EndTxn below v5, whose epoch does not tell one transaction from the next."""
    producer = transactional(broker)
    broker.faults.repeat("END_TXN", seconds=1)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce("t", value="b", partition=0)
    assert producer.flush(20) == 0
    broker.advance(1)
    with pytest.raises(KafkaException, match="INVALID_TXN_STATE"):
        producer.commit_transaction(30)


def test_records_are_held_back_as_long_as_a_marker_is(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.hold("MARKER")
    producer.commit_transaction(30)
    broker.faults.wait_held("MARKER")
    assert stable_end(broker) == 0, "the coordinator has committed, the partition does not know it yet"
    broker.faults.release()
    assert committed(broker, 1) == [b"a"]


@pytest.mark.parametrize("lost", ["drop", "lose_answer"])
def test_a_marker_that_is_lost_is_sent_again(broker: Broker, lost: str) -> None:
    producer = transactional(broker)
    getattr(broker.faults, lost)("MARKER", times=2)
    producer.commit_transaction(30)
    while broker.faults.pending:
        broker.advance(1)
    assert committed(broker, 1) == [b"a"]


def test_a_marker_that_comes_twice_or_late_ends_one_transaction(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.repeat("MARKER")
    broker.faults.delay("MARKER", 0.05)
    producer.abort_transaction(30)
    for value in ("b", "c"):
        producer.begin_transaction()
        producer.produce("t", value=value, partition=0)
        producer.commit_transaction(30)
    assert committed(broker, 2) == [b"b", b"c"]


def test_a_refused_marker_is_answered_with_the_error(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.refuse("MARKER", "NOT_LEADER_OR_FOLLOWER")
    producer.commit_transaction(30)
    broker.advance(5)
    assert committed(broker, 1) == [b"a"]


def test_while_a_coordinator_loads_its_clients_wait(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.hold("COORDINATOR_LOAD", times=8)
    broker.reload_coordinators()
    broker.faults.wait_held("COORDINATOR_LOAD", count=8)
    done = threading.Thread(target=producer.commit_transaction, args=(30,))
    done.start()
    assert stable_end(broker) == 0
    assert broker.faults.release("COORDINATOR_LOAD") == 8
    done.join(30)
    assert committed(broker, 1) == [b"a"]


def test_a_load_that_fails_is_tried_again_after_a_minute(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.drop("COORDINATOR_LOAD", times=8)
    broker.reload_coordinators()
    done = threading.Thread(target=producer.commit_transaction, args=(30,))
    done.start()
    while broker.faults.pending:
        broker.advance(1)
    broker.advance(61)
    done.join(30)
    assert committed(broker, 1) == [b"a"]


def test_what_is_held_is_let_go_by_clear(broker: Broker) -> None:
    producer = transactional(broker)
    broker.faults.hold("MARKER")
    producer.commit_transaction(30)
    broker.faults.wait_held("MARKER")
    broker.faults.clear()
    assert committed(broker, 1) == [b"a"]


def test_a_held_fault_that_nobody_meets_is_told_of(broker: Broker) -> None:
    broker.faults.hold("END_TXN")
    with pytest.raises(TimeoutError, match="0 of END_TXN are held"):
        broker.faults.wait_held("END_TXN", timeout_s=0.01)


def test_nonsense_is_refused() -> None:
    with Broker() as broker:
        with pytest.raises(ValueError, match="a load has no answer"):
            broker.faults.refuse("COORDINATOR_LOAD", "NOT_COORDINATOR")
        with pytest.raises(ValueError, match="without seconds"):
            broker.faults.repeat("PRODUCE", seconds=1)
        with pytest.raises(ValueError, match="at least one"):
            broker.faults.drop("FETCH", times=0)
        with pytest.raises(ValueError, match="Did you mean FETCH"):
            broker.faults.drop("FETSCH")


def test_what_was_held_when_its_broker_ended_is_not_there_to_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.server.node.DRAIN_S", 0.05)
    with Broker() as broker:
        broker.faults.hold("METADATA")
        talk = Talk(broker.port)
        talk.send(MetadataRequest(topics=[]), 9)
        broker.faults.wait_held("METADATA")
        broker.restart()
        assert broker.faults.release() == 0
        broker.reset()


def test_a_wrong_name_is_refused_with_the_closest_one() -> None:
    faults = Faults(asyncio.sleep)
    with pytest.raises(ValueError, match=r"there is no API PRODUCEE\. Did you mean PRODUCE\?"):
        faults.drop("PRODUCEE")
    with pytest.raises(ValueError, match=r"there is no API MARKERS\. Did you mean MARKER\?"):
        faults.drop("MARKERS")
    with pytest.raises(ValueError, match=r"there is no error NOT_LEADER\. Did you mean"):
        faults.refuse("PRODUCE", "NOT_LEADER")
    with pytest.raises(ValueError, match=r"there is no API xyzzy\. The names are those of ApiKey"):
        faults.hold("xyzzy")
    assert faults.pending == 0
