"""Four clients behind one interface: Apache Kafka's Java clients, librdkafka, aiokafka and kafka-python.

Each writes samples in order, and reads partitions by assignment (no consumer groups).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka

from tests.interop.java import JavaSide, as_bytes, as_text
from tests.interop.samples import Delivery, Read, Sample

LIMIT_S = 30.0
FETCH_WAIT_MS = 50  # for those who would wait half a second to learn that the partition ends here
LINGER_MS = 20  # long enough that records share batches
WITHOUT_GROUP = "not-a-group"  # librdkafka wants the setting even where no group is used


@dataclass(frozen=True, slots=True)
class AtTime:
    """Start at the first record with this timestamp (ms) or a later one."""

    timestamp: int


Start = str | int | AtTime  # "beginning", an offset, a time


@dataclass(frozen=True, slots=True)
class Offsets:
    """What ListOffsets said about a partition: first, end, and for each time the offset found (None when there is none)."""

    beginning: int
    end: int
    by_time: Mapping[int, int | None]


class Client(Protocol):
    """One client library."""

    name: str
    null_key_and_value: bool  # can write a record that has neither key nor value
    null_header: bool  # can write a header without a value

    def write(self, bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> list[int]:
        """Write the samples in order; their offsets (-1 when acks=0)."""

    def read(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: Start = "beginning", committed: bool = False
    ) -> list[Read]:
        """Everything from ``start`` up to where the partitions end when we come."""

    def offsets(self, bootstrap: str, topic: str, partition: int, times: Sequence[int] = ()) -> Offsets:
        """Ask for the partition's offsets."""

    def read_after_end(self, bootstrap: str, topic: str, sample: Sample) -> list[Read]:
        """Stand at the end, then write the sample, and read what comes."""


def fit(client: Client, samples: Sequence[Sample]) -> list[Sample]:
    """The samples in a form which this client can write."""
    fitting = []
    for one in samples:
        headers = one.headers if client.null_header else tuple((name, value or b"") for name, value in one.headers)
        key = b"key" if one.key is None and one.value is None and not client.null_key_and_value else one.key
        fitting.append(Sample(one.partition, key, one.value, headers, one.timestamp))
    return fitting


def until(done: Callable[[], bool], what: str) -> Iterator[None]:
    """Turns of a loop until ``done``; an AssertionError after LIMIT_S."""
    deadline = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < deadline, f"{what}: not done after {LIMIT_S} s"
        yield


class Java:
    """Apache Kafka's clients, in the JVM of ``JavaSide``."""

    name = "java"
    null_key_and_value = True
    null_header = True

    def __init__(self, java: JavaSide) -> None:
        self.java = java

    @staticmethod
    def produce_request(bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> dict[str, Any]:
        config = {
            "acks": delivery.acks,
            "enable.idempotence": str(delivery.idempotent).lower(),
            "compression.type": codec,
            "linger.ms": LINGER_MS,
            "max.block.ms": int(LIMIT_S * 1000),
            "delivery.timeout.ms": int(LIMIT_S * 1000),
            "request.timeout.ms": 10_000,
        }
        records = [
            {
                "partition": one.partition,
                "key": as_text(one.key),
                "value": as_text(one.value),
                "timestamp": one.timestamp,
                "headers": [[name, as_text(value)] for name, value in one.headers],
            }
            for one in samples
        ]
        return {"bootstrap": bootstrap, "topic": topic, "config": config, "records": records}

    def write(self, bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> list[int]:
        offsets: list[int] = self.java.ask("produce", **self.produce_request(bootstrap, topic, samples, codec, delivery))[
            "offsets"
        ]
        return offsets

    def consume(self, bootstrap: str, topic: str, partitions: Sequence[int], start: Any, **more: Any) -> list[Read]:
        fields: dict[str, Any] = {"timeout_ms": int(LIMIT_S * 1000), "count": -1, **more}
        answer = self.java.ask(
            "consume", bootstrap=bootstrap, topic=topic, partitions=list(partitions), **{"from": start}, **fields
        )
        return [
            Read(
                one["partition"],
                one["offset"],
                one["timestamp"],
                as_bytes(one["key"]),
                as_bytes(one["value"]),
                tuple((name, as_bytes(value)) for name, value in one["headers"]),
            )
            for one in answer["records"]
        ]

    def read(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: Start = "beginning", committed: bool = False
    ) -> list[Read]:
        where = {"timestamp": start.timestamp} if isinstance(start, AtTime) else start
        config = {"isolation.level": "read_committed" if committed else "read_uncommitted"}
        return self.consume(bootstrap, topic, partitions, where, config=config | {"fetch.max.wait.ms": FETCH_WAIT_MS})

    def offsets(self, bootstrap: str, topic: str, partition: int, times: Sequence[int] = ()) -> Offsets:
        answer = self.java.ask("offsets", bootstrap=bootstrap, topic=topic, partitions=[partition], timestamps=list(times))
        at = str(partition)
        found = {when: answer["by_time"][str(when)].get(at, [None])[0] for when in times}
        return Offsets(answer["beginning"][at], answer["end"][at], found)

    def read_after_end(self, bootstrap: str, topic: str, sample: Sample) -> list[Read]:
        then = self.produce_request(bootstrap, topic, [sample], "none", Delivery("all", False))
        return self.consume(bootstrap, topic, [sample.partition], "end", count=1, then=then)


class Librdkafka:
    """confluent-kafka."""

    name = "librdkafka"
    null_key_and_value = True
    null_header = True

    def write(self, bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> list[int]:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": delivery.acks,
                "enable.idempotence": delivery.idempotent,
                "compression.type": codec,
                "linger.ms": LINGER_MS,
                "delivery.timeout.ms": int(LIMIT_S * 1000),
            }
        )
        offsets: list[int] = []

        def delivered(error: Any, message: Any) -> None:
            assert error is None, f"not delivered: {error}"
            offsets.append(-1 if delivery.acks == "0" else message.offset())

        for one in samples:
            producer.produce(
                topic,
                value=one.value,
                key=one.key,
                partition=one.partition,
                timestamp=one.timestamp,
                headers=list(one.headers),
                on_delivery=delivered,
            )
        for _ in until(lambda: len(offsets) == len(samples), "produce"):
            producer.poll(0.05)
        return offsets

    @contextlib.contextmanager
    def consumer(self, bootstrap: str, committed: bool = False, **config: Any) -> Iterator[Any]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": WITHOUT_GROUP,
                "enable.auto.commit": False,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                **config,
            }
        )
        try:
            yield consumer
        finally:
            consumer.close()

    @staticmethod
    def as_read(message: Any) -> Read:
        headers = tuple((name, value) for name, value in message.headers() or ())
        return Read(message.partition(), message.offset(), message.timestamp()[1], message.key(), message.value(), headers)

    def read(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: Start = "beginning", committed: bool = False
    ) -> list[Read]:
        reads: list[Read] = []
        ended: set[int] = set()
        with self.consumer(bootstrap, committed) as consumer:
            consumer.list_topics(topic, LIMIT_S)  # who does not know the leader yet asks for offsets half a second later
            if isinstance(start, AtTime):
                wanted = [confluent_kafka.TopicPartition(topic, p, start.timestamp) for p in partitions]
                wanted = consumer.offsets_for_times(wanted, timeout=LIMIT_S)
            else:
                offset = confluent_kafka.OFFSET_BEGINNING if start == "beginning" else start
                wanted = [confluent_kafka.TopicPartition(topic, p, offset) for p in partitions]
            consumer.assign(wanted)
            for _ in until(lambda: len(ended) == len(partitions), "consume"):
                for message in consumer.consume(500, timeout=0.1):
                    error = message.error()
                    if error is None:
                        reads.append(self.as_read(message))
                    else:
                        assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, f"consume: {error}"
                        ended.add(message.partition())
        return reads

    def offsets(self, bootstrap: str, topic: str, partition: int, times: Sequence[int] = ()) -> Offsets:
        with self.consumer(bootstrap) as consumer:
            beginning, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, partition), timeout=LIMIT_S)
            found: dict[int, int | None] = {}
            for when in times:
                (at,) = consumer.offsets_for_times([confluent_kafka.TopicPartition(topic, partition, when)], timeout=LIMIT_S)
                found[when] = None if at.offset == confluent_kafka.OFFSET_END else at.offset
            return Offsets(beginning, end, found)

    def read_after_end(self, bootstrap: str, topic: str, sample: Sample) -> list[Read]:
        with self.consumer(bootstrap) as consumer:
            consumer.list_topics(topic, LIMIT_S)
            consumer.assign([confluent_kafka.TopicPartition(topic, sample.partition, confluent_kafka.OFFSET_END)])
            message = consumer.poll(LIMIT_S)
            assert message is not None, "the end was not reached"
            assert message.error() is not None, f"a record before the end: {self.as_read(message)}"
            self.write(bootstrap, topic, [sample], "none", Delivery("all", False))
            message = consumer.poll(LIMIT_S)
            assert message is not None, "the record did not come"
            assert message.error() is None, f"consume: {message.error()}"
            return [self.as_read(message)]


class Aiokafka:
    """aiokafka, each call in an event loop of its own."""

    name = "aiokafka"
    null_key_and_value = False
    null_header = True

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(work, LIMIT_S))

    async def produce(self, bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=delivery.acks if delivery.acks == "all" else int(delivery.acks),
            enable_idempotence=delivery.idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic, one.value, key=one.key, partition=one.partition, timestamp_ms=one.timestamp, headers=list(one.headers)
                )
                for one in samples
            ]
            done = [await future for future in sent]
            return [-1 if delivery.acks == "0" else metadata.offset for metadata in done]
        finally:
            await producer.stop()

    def write(self, bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> list[int]:
        return self.run(self.produce(bootstrap, topic, samples, codec, delivery))

    @contextlib.asynccontextmanager
    async def consumer(self, bootstrap: str, committed: bool = False) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
        await consumer.start()
        try:
            yield consumer
        finally:
            await consumer.stop()

    @staticmethod
    def as_read(record: Any) -> Read:
        return Read(record.partition, record.offset, record.timestamp, record.key, record.value, tuple(record.headers))

    async def consume(self, bootstrap: str, topic: str, partitions: Sequence[int], start: Start, committed: bool) -> list[Read]:
        reads: list[Read] = []
        async with self.consumer(bootstrap, committed) as consumer:
            assigned = [aiokafka.TopicPartition(topic, p) for p in partitions]
            consumer.assign(assigned)
            ends = await consumer.end_offsets(assigned)
            if isinstance(start, AtTime):
                found = await consumer.offsets_for_times(dict.fromkeys(assigned, start.timestamp))
                for one in assigned:
                    consumer.seek(one, ends[one] if found[one] is None else found[one].offset)
            elif start == "beginning":
                await consumer.seek_to_beginning(*assigned)
            else:
                for one in assigned:
                    consumer.seek(one, start)
            while any([await consumer.position(one) < ends[one] for one in assigned]):
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    reads += map(self.as_read, records)
        return reads

    def read(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: Start = "beginning", committed: bool = False
    ) -> list[Read]:
        return self.run(self.consume(bootstrap, topic, partitions, start, committed))

    async def ask_offsets(self, bootstrap: str, topic: str, partition: int, times: Sequence[int]) -> Offsets:
        one = aiokafka.TopicPartition(topic, partition)
        async with self.consumer(bootstrap) as consumer:
            found = {}
            for when in times:
                at = (await consumer.offsets_for_times({one: when}))[one]
                found[when] = None if at is None else at.offset
            beginning, end = await consumer.beginning_offsets([one]), await consumer.end_offsets([one])
            return Offsets(beginning[one], end[one], found)

    def offsets(self, bootstrap: str, topic: str, partition: int, times: Sequence[int] = ()) -> Offsets:
        return self.run(self.ask_offsets(bootstrap, topic, partition, times))

    async def stand_and_read(self, bootstrap: str, topic: str, sample: Sample) -> list[Read]:
        one = aiokafka.TopicPartition(topic, sample.partition)
        async with self.consumer(bootstrap) as consumer:
            consumer.assign([one])
            await consumer.seek_to_end(one)
            await consumer.position(one)
            await self.produce(bootstrap, topic, [sample], "none", Delivery("all", False))
            return [self.as_read(await consumer.getone())]

    def read_after_end(self, bootstrap: str, topic: str, sample: Sample) -> list[Read]:
        return self.run(self.stand_and_read(bootstrap, topic, sample))


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"
    null_key_and_value = False
    null_header = False

    def write(self, bootstrap: str, topic: str, samples: Sequence[Sample], codec: str, delivery: Delivery) -> list[int]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            acks=delivery.acks if delivery.acks == "all" else int(delivery.acks),
            enable_idempotence=delivery.idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=LINGER_MS,
            max_block_ms=int(LIMIT_S * 1000),
        )
        try:
            sent = [
                producer.send(
                    topic, one.value, one.key, headers=list(one.headers), partition=one.partition, timestamp_ms=one.timestamp
                )
                for one in samples
            ]
            done = [future.get(timeout=LIMIT_S) for future in sent]
            return [-1 if delivery.acks == "0" else metadata.offset for metadata in done]
        finally:
            producer.close(timeout=LIMIT_S)

    @contextlib.contextmanager
    def consumer(self, bootstrap: str, committed: bool = False) -> Iterator[Any]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
        try:
            yield consumer
        finally:
            consumer.close()

    @staticmethod
    def as_read(record: Any) -> Read:
        return Read(
            record.partition, record.offset, record.timestamp, record.key, record.value, tuple(map(tuple, record.headers))
        )

    def read(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: Start = "beginning", committed: bool = False
    ) -> list[Read]:
        reads: list[Read] = []
        with self.consumer(bootstrap, committed) as consumer:
            assigned = [kafka.TopicPartition(topic, p) for p in partitions]
            consumer.assign(assigned)
            ends = consumer.end_offsets(assigned)
            if isinstance(start, AtTime):
                found = consumer.offsets_for_times(dict.fromkeys(assigned, start.timestamp))
                for one in assigned:
                    consumer.seek(one, ends[one] if found[one] is None else found[one].offset)
            elif start == "beginning":
                consumer.seek_to_beginning(*assigned)
            else:
                for one in assigned:
                    consumer.seek(one, start)
            for _ in until(lambda: all(consumer.position(one) >= ends[one] for one in assigned), "consume"):
                for records in consumer.poll(timeout_ms=100).values():
                    reads += map(self.as_read, records)
        return reads

    def offsets(self, bootstrap: str, topic: str, partition: int, times: Sequence[int] = ()) -> Offsets:
        one = kafka.TopicPartition(topic, partition)
        with self.consumer(bootstrap) as consumer:
            found = {}
            for when in times:
                at = consumer.offsets_for_times({one: when})[one]
                found[when] = None if at is None else at.offset
            return Offsets(consumer.beginning_offsets([one])[one], consumer.end_offsets([one])[one], found)

    def read_after_end(self, bootstrap: str, topic: str, sample: Sample) -> list[Read]:
        one = kafka.TopicPartition(topic, sample.partition)
        with self.consumer(bootstrap) as consumer:
            consumer.assign([one])
            consumer.seek_to_end(one)
            consumer.position(one)
            self.write(bootstrap, topic, [sample], "none", Delivery("all", False))
            found = consumer.poll(timeout_ms=int(LIMIT_S * 1000))
            return [self.as_read(record) for records in found.values() for record in records]


CLIENTS = ("java", "librdkafka", "aiokafka", "kafka-python")


def client(name: str, java: JavaSide) -> Client:
    """The client of that name."""
    made: dict[str, Callable[[], Client]] = {
        "java": lambda: Java(java),
        "librdkafka": Librdkafka,
        "aiokafka": Aiokafka,
        "kafka-python": KafkaPython,
    }
    return made[name]()
