"""A process with some group members of one Python client library, told on standard input what to do.

``python -m tests.churn.worker LIBRARY BOOTSTRAP HISTORY``: commands are lines of JSON (``Command`` says which), what happens is
appended to the file HISTORY, one line of JSON per event, each with a single write, so that a kill -9 loses nothing that happened.
The end of standard input closes all members. ``Members.java`` is the same for Apache Kafka's consumer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiokafka
import aiokafka.coordinator.assignors.range
import aiokafka.coordinator.assignors.roundrobin
import confluent_kafka
import kafka
import kafka.coordinator.assignors.cooperative_sticky
import kafka.coordinator.assignors.range

SESSION_MS = 8_000
HEARTBEAT_MS = 1_000
MAX_POLL_MS = 15_000
POLL_S = 0.3
TOPICS = ("churn-a", "churn-b")
Command = Mapping[str, Any]
"""``op`` and ``member``; start: ``group``, ``protocol``, ``assignor``, ``instance``; pause: ``ms``; close."""
Partition = tuple[str, int]


class History:
    """Where events go."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, command: Command, kind: str, **fields: Any) -> None:
        """One event of the member that ``command`` started."""
        event = {"t": time.monotonic_ns(), "e": kind, "m": command["member"], "g": command["group"], **fields}
        os.write(self._file, json.dumps(event, separators=(",", ":")).encode() + b"\n")


def named(partitions: Sequence[Partition]) -> list[str]:
    """As they are written in the history."""
    return sorted(f"{topic}-{number}" for topic, number in partitions)


class Member:
    """What all libraries share: turns of polling, handling and committing, pauses, the end."""

    def __init__(self, command: Command, bootstrap: str, history: History) -> None:
        self.command, self.bootstrap, self.history = command, bootstrap, history
        self.closing = threading.Event()
        self.resume_at = 0.0
        self.epoch = -1
        """The generation or member epoch as of the last time that partitions were given."""

    def note(self, kind: str, **fields: Any) -> None:
        self.history.add(self.command, kind, **fields)

    def gained(self, partitions: Sequence[Partition], epoch: int) -> None:
        self.epoch = epoch
        self.note("assigned", p=named(partitions), n=epoch)

    def gave_up(self, partitions: Sequence[Partition], kind: str = "revoked") -> None:
        self.note(kind, p=named(partitions), n=self.epoch)

    def handled(self, records: Mapping[Partition, list[int]]) -> dict[str, int]:
        """Notes records as handled; the positions after them, to be committed."""
        self.note("handled", n=self.epoch, o={f"{topic}-{number}": offsets for (topic, number), offsets in records.items()})
        return {f"{topic}-{number}": max(offsets) + 1 for (topic, number), offsets in records.items()}

    def pause(self, ms: int) -> None:
        self.note("pause", ms=ms)
        self.resume_at = time.monotonic() + ms / 1000


class ConfluentMember(Member):
    """librdkafka."""

    def run(self) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.command["group"],
            "group.protocol": self.command["protocol"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.interval.ms": MAX_POLL_MS,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": self.command["assignor"],
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        if self.command["protocol"] == "consumer":
            for classic in ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"):
                del settings[classic]
            settings["group.remote.assignor"] = self.command["assignor"]
        if self.command["instance"]:
            settings["group.instance.id"] = self.command["instance"]
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(list(TOPICS), on_assign=self.on_assign, on_revoke=self.on_revoke, on_lost=self.on_lost)
        try:
            while not self.closing.wait(max(0.0, self.resume_at - time.monotonic())):
                self.turn(consumer)
        finally:
            consumer.close()

    def turn(self, consumer: confluent_kafka.Consumer) -> None:
        found: dict[Partition, list[int]] = {}
        try:
            for message in consumer.consume(200, timeout=POLL_S):
                if message.error() is None:
                    found.setdefault((message.topic(), message.partition()), []).append(message.offset())
                else:
                    self.trouble(message.error())
        except confluent_kafka.KafkaException as failed:
            self.trouble(failed.args[0])
        if not found:
            return
        positions = self.handled(found)
        places = [confluent_kafka.TopicPartition(topic, number, max(offsets) + 1) for (topic, number), offsets in found.items()]
        try:
            answers = consumer.commit(offsets=places, asynchronous=False)
            wrong = {answer.error.name() for answer in answers if answer.error}
            self.note(
                "commit failed" if wrong else "committed", o=positions, n=self.epoch, **({"why": sorted(wrong)} if wrong else {})
            )
        except confluent_kafka.KafkaException as failed:
            self.note("commit failed", o=positions, n=self.epoch, why=[failed.args[0].name()])

    def trouble(self, error: confluent_kafka.KafkaError) -> None:
        """A fatal error is the end of this consumer: an application would have to make another one."""
        if error.fatal() or error.code() == confluent_kafka.KafkaError._FATAL:
            raise confluent_kafka.KafkaException(error)
        self.note("trouble", why=error.name())

    @staticmethod
    def epoch_of(consumer: confluent_kafka.Consumer) -> int:
        """librdkafka tells the generation only to transactions: behind 7 bytes of magic in an opaque value."""
        return int(struct.unpack_from("=i", consumer.consumer_group_metadata(), len(b"CGMDv2:"))[0])

    def on_assign(self, consumer: confluent_kafka.Consumer, partitions: list[Any]) -> None:
        self.gained([(one.topic, one.partition) for one in partitions], self.epoch_of(consumer))

    def on_revoke(self, _consumer: confluent_kafka.Consumer, partitions: list[Any]) -> None:
        self.gave_up([(one.topic, one.partition) for one in partitions])

    def on_lost(self, _consumer: confluent_kafka.Consumer, partitions: list[Any]) -> None:
        self.gave_up([(one.topic, one.partition) for one in partitions], "lost")


class KafkaPythonMember(Member, kafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """kafka-python."""

    consumer: Any

    def run(self) -> None:
        strategies = {
            "range": kafka.coordinator.assignors.range.RangePartitionAssignor,
            "cooperative-sticky": kafka.coordinator.assignors.cooperative_sticky.CooperativeStickyAssignor,
        }
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.command["group"],
            group_instance_id=self.command["instance"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=MAX_POLL_MS,
            partition_assignment_strategy=[strategies[self.command["assignor"]]],
            reconnect_backoff_max_ms=500,
        )
        self.consumer.subscribe(list(TOPICS), listener=self)
        try:
            while not self.closing.wait(max(0.0, self.resume_at - time.monotonic())):
                self.turn()
        finally:
            self.consumer.close()

    def turn(self) -> None:
        try:
            batches = self.consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=200)
        except kafka.errors.KafkaError as failed:
            self.note("trouble", why=type(failed).__name__)
            return
        found = {(place.topic, place.partition): [one.offset for one in records] for place, records in batches.items() if records}
        if not found:
            return
        positions = self.handled(found)
        places = {
            kafka.TopicPartition(topic, number): kafka.OffsetAndMetadata(max(offsets) + 1, "", -1)
            for (topic, number), offsets in found.items()
        }
        try:
            self.consumer.commit(places, timeout_ms=10_000)
            self.note("committed", o=positions, n=self.epoch)
        except kafka.errors.KafkaError as failed:
            self.note("commit failed", o=positions, n=self.epoch, why=[type(failed).__name__])

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.gained([(one.topic, one.partition) for one in assigned], self.consumer._coordinator._generation.generation_id)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.gave_up([(one.topic, one.partition) for one in revoked])


class AiokafkaMember(Member, aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """aiokafka; each member has a loop of its own."""

    consumer: Any

    def run(self) -> None:
        asyncio.run(self.live())

    async def live(self) -> None:
        assignor = {"range": aiokafka.coordinator.assignors.range.RangePartitionAssignor}[self.command["assignor"]]
        self.consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.command["group"],
            group_instance_id=self.command["instance"],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=MAX_POLL_MS,
            partition_assignment_strategy=[assignor],
        )
        self.consumer.subscribe(list(TOPICS), listener=self)
        while not self.closing.is_set():  # the node may be away
            try:
                await self.consumer.start()
                break
            except aiokafka.errors.KafkaError as failed:
                self.note("trouble", why=type(failed).__name__)
                await asyncio.sleep(0.3)
        try:
            while not self.closing.is_set():
                if self.resume_at > time.monotonic():
                    # Its heartbeats are of its own loop: they go on, only polling stops.
                    await asyncio.sleep(0.1)
                else:
                    await self.turn()
        finally:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.consumer.stop(), 20)

    async def turn(self) -> None:
        try:
            batches = await self.consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=200)
        except aiokafka.errors.KafkaError as failed:
            if not failed.retriable:
                raise  # it would raise the same for ever
            self.note("trouble", why=f"{type(failed).__name__}: {failed}"[:200])
            await asyncio.sleep(0.3)
            return
        found = {(place.topic, place.partition): [one.offset for one in records] for place, records in batches.items() if records}
        if not found:
            return
        positions = self.handled(found)
        places = {aiokafka.TopicPartition(topic, number): max(offsets) + 1 for (topic, number), offsets in found.items()}
        try:
            await asyncio.wait_for(self.consumer.commit(places), 10)
            self.note("committed", o=positions, n=self.epoch)
        except (aiokafka.errors.KafkaError, TimeoutError) as failed:
            self.note("commit failed", o=positions, n=self.epoch, why=[type(failed).__name__])

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.gained([(one.topic, one.partition) for one in assigned], self.consumer._coordinator.generation)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.gave_up([(one.topic, one.partition) for one in revoked])


LIBRARIES: Mapping[str, type[Any]] = {
    "librdkafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
}


def living(member: Any) -> Callable[[], None]:
    """A member's thread: what ends it goes into the history."""

    def live() -> None:
        member.note("started", instance=member.command["instance"])
        try:
            member.run()
            member.note("closed")
        except BaseException as failed:
            member.note("died", why=f"{type(failed).__name__}: {failed}"[:300])
            raise

    return live


def main(library: str, bootstrap: str, path: str) -> None:
    history = History(path)
    members: dict[str, Any] = {}
    threads = []
    for line in sys.stdin:
        command = json.loads(line)
        name = command["member"]
        if command["op"] == "start":
            members[name] = LIBRARIES[library](command, bootstrap, history)
            threads.append(threading.Thread(target=living(members[name]), name=name))
            threads[-1].start()
        elif command["op"] == "close":
            members.pop(name).closing.set()
        elif command["op"] == "pause":
            members[name].pause(command["ms"])
    for member in members.values():
        member.closing.set()
    for thread in threads:
        thread.join(40)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
