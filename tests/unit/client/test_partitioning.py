"""Keys go where Java's producer would put them."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from tidelog.client.partitioning import murmur2, partition_of
from tidelog.testing import Broker


@pytest.mark.parametrize(
    ("data", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_kafkas_own_test(data: bytes, hashed: int) -> None:
    assert murmur2(data) == hashed


def test_partitions_are_those_that_librdkafka_chooses_with_javas_partitioner() -> None:
    keys = [b"k" * i + bytes([i, 255 - i]) for i in range(64)]
    with Broker() as broker:
        broker.create_topic("t", 7)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2"})
        for key in keys:
            producer.produce("t", b"", key)
        producer.flush(30)
        placed = {message.key: message.partition for message in broker.messages("t")}
    assert placed == {key: partition_of(key, 7) for key in keys}
