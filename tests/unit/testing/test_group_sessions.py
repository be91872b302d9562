"""A member is put out on demand, and its client notices."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka.admin import AdminClient

from tidelog.testing import Broker


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_is_put_out_and_joins_again(protocol: str) -> None:
    with Broker(config={"group.consumer.heartbeat.interval.ms": 500, "group.consumer.min.heartbeat.interval.ms": 500}) as broker:
        broker.produce("t", "a")
        revoked: list[int] = []
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "group.protocol": protocol})
        consumer.subscribe(["t"], on_lost=lambda _, partitions: revoked.append(len(partitions)))
        assert consumer.consume(1, 15)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (member,) = admin.describe_consumer_groups(["g"])["g"].result().members
        assert broker.expire_member("g", member.member_id) == [member.member_id]
        assert admin.describe_consumer_groups(["g"])["g"].result().state is ConsumerGroupState.EMPTY
        while not revoked:
            consumer.poll(0.1)
        broker.produce("t", "b")
        while (message := consumer.poll(15)) is None or message.value() != b"b":
            pass
        (other,) = admin.describe_consumer_groups(["g"])["g"].result().members
        # A client of KIP-848 makes its id itself, and keeps it.
        assert (other.member_id == member.member_id) == (protocol == "consumer")
        assert broker.expire_member("g") == [other.member_id]
        consumer.close()


def test_whoever_is_not_there_is_named_with_those_who_are() -> None:
    with Broker() as broker:
        with pytest.raises(ValueError, match="group g has no members"):
            broker.expire_member("g")
        broker.produce("t", "a")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        assert consumer.consume(1, 15)
        with pytest.raises(ValueError, match="no member nobody; it has rdkafka-"):
            broker.expire_member("g", "nobody")
        consumer.close()
