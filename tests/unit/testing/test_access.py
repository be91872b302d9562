"""Users and ACLs of the broker that tests of other projects use, with librdkafka."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from tidelog.testing import Broker, allow, deny
from tidelog.testing.users import MECHANISMS

USERS = {"alice": "s3cret", "bob": 'x"y\\z'}
QUIET = {"log_level": 0}


def produced(settings: dict[str, str], topic: str = "orders") -> Any:
    """The error code of one record, None for success."""
    told: list[Any] = []
    producer = Producer(QUIET | settings)
    producer.produce(topic, b"v", on_delivery=lambda error, message: told.append(error and error.code()))
    assert producer.flush(20) == 0
    return told[0]


@pytest.mark.parametrize("process", [False, True])
def test_users_log_in_by_each_mechanism_and_may_do_everything_without_acls(process: bool) -> None:
    with Broker(users=USERS, process=process) as broker:
        for mechanism in MECHANISMS:
            assert produced(broker.access.client_settings("bob", mechanism)) is None
        assert len(broker.messages("orders")) == len(MECHANISMS)


def test_a_wrong_password_opens_nothing() -> None:
    with Broker(users=USERS) as broker:
        for mechanism in MECHANISMS:
            errors: list[Any] = []
            settings: dict[str, Any] = broker.access.client_settings("alice", mechanism) | {"sasl.password": "wrong"}
            producer = Producer(QUIET | settings | {"error_cb": errors.append})
            while not errors:
                producer.poll(0.1)
            assert errors[0].code() == KafkaError._AUTHENTICATION


@pytest.mark.parametrize("process", [False, True])
def test_acls_say_who_may_do_what(process: bool) -> None:
    acls = [
        allow("alice", "write", "create", topic="orders"),
        allow("bob", "read", topic="ord", prefixed=True),
        allow("bob", "read", group="g"),
        deny("alice", "write", topic="orders-secret"),
    ]
    with Broker(users=USERS, acls=acls, process=process) as broker:
        assert produced(broker.access.client_settings("alice")) is None
        assert produced(broker.access.client_settings("bob")) == KafkaError.TOPIC_AUTHORIZATION_FAILED
        reading = {"group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer(QUIET | broker.access.client_settings("bob", "PLAIN") | reading)
        consumer.subscribe(["orders"])
        assert [each.value() for each in consumer.consume(1, 20)] == [b"v"]
        consumer.close()
        broker.access.set_acls([])
        assert produced(broker.access.client_settings("alice")) == KafkaError.TOPIC_AUTHORIZATION_FAILED
        broker.access.set_acls([allow("*", "all", topic="*")])
        assert produced(broker.access.client_settings("bob")) is None
        broker.reset()
        assert produced(broker.access.client_settings("bob")) == KafkaError.TOPIC_AUTHORIZATION_FAILED, "the first ACLs are back"
        broker.restart()
        assert produced(broker.access.client_settings("alice")) is None


def test_acls_without_users_are_for_everyone() -> None:
    with Broker(acls=[allow("ANONYMOUS", "all", topic="mine")]) as broker:
        assert produced(broker.access.client_settings(), "mine") is None
        assert produced(broker.access.client_settings(), "yours") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_what_a_broker_was_not_given_it_does_not_have() -> None:
    with Broker() as broker:
        assert broker.access.client_settings() == {"bootstrap.servers": broker.bootstrap_servers}
        with pytest.raises(ValueError, match="no users"):
            broker.access.client_settings("alice")
        with pytest.raises(ValueError, match="no authorizer"):
            broker.access.set_acls([])
    with Broker(users=USERS) as broker:
        with pytest.raises(ValueError, match="no user 'eve'; there are alice, bob"):
            broker.access.client_settings("eve")
        with pytest.raises(ValueError, match="SCRAM-SHA-1 is not offered"):
            broker.access.client_settings("alice", "SCRAM-SHA-1")
        with pytest.raises(ValueError, match="no authorizer"):
            broker.access.set_acls([])
