"""Fifty tests as an application's suite has them, with confluent-kafka: ten kinds, five cases each."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

MakeTopic = Callable[..., str]


def send(bootstrap: str, topic: str, values: list[str], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for number, value in enumerate(values):
        producer.produce(topic, key=f"k{number % 7}", value=value)
    assert producer.flush(30) == 0


def reader(bootstrap: str, **settings: Any) -> Consumer:
    group = f"g-{uuid.uuid4().hex[:12]}"
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **settings})


def read(consumer: Consumer, count: int) -> list[Message]:
    messages: list[Message] = []
    while len(messages) < count:
        got = consumer.consume(count - len(messages), 30)
        assert got, f"{len(messages)} of {count}"
        messages += got
    return messages


@pytest.mark.parametrize("count", [1, 10, 100, 500, 1000])
def test_what_is_produced_is_consumed(count: int, bootstrap: str, topic: MakeTopic) -> None:
    name = topic()
    values = [f"v{number}" for number in range(count)]
    send(bootstrap, name, values)
    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    assert [message.value().decode() for message in read(consumer, count)] == values
    consumer.close()


@pytest.mark.parametrize("partitions", [1, 2, 3, 6, 12])
def test_equal_keys_stay_in_one_partition(partitions: int, bootstrap: str, topic: MakeTopic) -> None:
    name = topic(partitions)
    send(bootstrap, name, [str(number) for number in range(50)])
    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(name, index, OFFSET_BEGINNING) for index in range(partitions)])
    places: dict[bytes, set[int]] = {}
    for message in read(consumer, 50):
        places.setdefault(message.key(), set()).add(message.partition())
    assert all(len(found) == 1 for found in places.values())
    consumer.close()


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 6])
def test_a_group_gets_everything(partitions: int, bootstrap: str, topic: MakeTopic) -> None:
    name = topic(partitions)
    send(bootstrap, name, [str(number) for number in range(30)])
    consumer = reader(bootstrap)
    consumer.subscribe([name])
    assert len(read(consumer, 30)) == 30
    consumer.close()


@pytest.mark.parametrize("stop_at", [1, 5, 10, 20, 29])
def test_a_group_goes_on_where_it_committed(stop_at: int, bootstrap: str, topic: MakeTopic) -> None:
    name = topic()
    send(bootstrap, name, [str(number) for number in range(30)])
    first = reader(bootstrap, **{"group.id": "app-" + name, "enable.auto.commit": False})
    first.subscribe([name])
    last = read(first, stop_at)[-1]
    first.commit(last, asynchronous=False)
    first.close()
    second = reader(bootstrap, **{"group.id": "app-" + name})
    second.subscribe([name])
    assert read(second, 30 - stop_at)[0].offset() == stop_at
    second.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(codec: str, bootstrap: str, topic: MakeTopic) -> None:
    name = topic()
    send(bootstrap, name, ["x" * 1000] * 100, **{"compression.type": codec})
    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    assert {message.value() for message in read(consumer, 100)} == {b"x" * 1000}
    consumer.close()


@pytest.mark.parametrize("acks", ["0", "1", "all", "all idempotent", "1 lingering"])
def test_acks_are_given(acks: str, bootstrap: str, topic: MakeTopic) -> None:
    name = topic()
    settings = {
        "acks": acks.split(maxsplit=1)[0],
        "enable.idempotence": "idempotent" in acks,
        "linger.ms": 20 * ("lingering" in acks),
    }
    send(bootstrap, name, ["a", "b"], **settings)
    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    assert len(read(consumer, 2)) == 2
    consumer.close()


@pytest.mark.parametrize("headers", [[], [("a", b"1")], [("a", b"1"), ("a", b"2")], [("n", None)], [("big", b"x" * 2000)]])
def test_headers_arrive(headers: list[tuple[str, bytes | None]], bootstrap: str, topic: MakeTopic) -> None:
    name = topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(name, value="v", headers=headers)
    assert producer.flush(30) == 0
    consumer = reader(bootstrap)
    consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
    assert (read(consumer, 1)[0].headers() or []) == headers
    consumer.close()


@pytest.mark.parametrize("setting", ["retention.ms=60000", "cleanup.policy=compact", "max.message.bytes=2000",
                                     "segment.bytes=1048576", "min.insync.replicas=1"])  # fmt: skip
def test_topic_settings_are_kept(setting: str, bootstrap: str, topic: MakeTopic) -> None:
    key, _, value = setting.partition("=")
    name = topic(**{key.replace(".", "_"): value})
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_configs([resource])[resource].result(30)
    assert found[key].value == value


@pytest.mark.parametrize("size", [1_500, 3_000, 10_000, 100_000, 900_000])
def test_records_that_are_too_large_are_refused(size: int, bootstrap: str, topic: MakeTopic) -> None:
    name = topic(max_message_bytes="1000")
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(name, value=b"x" * size, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert [error.code() for error in errors if error is not None] == [KafkaError.MSG_SIZE_TOO_LARGE]


@pytest.mark.parametrize("position", [0, 1, 10, 49, 50])
def test_offsets_are_found_by_time_and_by_end(position: int, bootstrap: str, topic: MakeTopic) -> None:
    name = topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(50):
        producer.produce(name, value=str(number), timestamp=1_700_000_000_000 + number)
    assert producer.flush(30) == 0
    consumer = reader(bootstrap)
    (found,) = consumer.offsets_for_times([TopicPartition(name, 0, 1_700_000_000_000 + position)], timeout=30)
    assert found.offset == (position if position < 50 else -1)
    assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30) == (0, 50)
    with pytest.raises(KafkaException):
        consumer.seek(TopicPartition(name, 0, 1))
    consumer.close()
