"""Faults are met once each, in order, by the requests they were planned for, and by no others."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from tidelog.testing import Broker


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


def test_nonsense_is_refused() -> None:
    with Broker() as broker:
        with pytest.raises(ValueError, match="at least one"):
            broker.faults.drop("FETCH", times=0)
        with pytest.raises(KeyError):
            broker.faults.drop("FETSCH")
