"""Clients that work without pause in threads of their own, and report to an ``Account``; each can be started again with another
access, as people do when they move or renew a login. One that sees an error which it must not see has failed, and ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from abc import ABC, abstractmethod
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.security_changes.access import Access
from tests.security_changes.account import LIMIT_S, Account

PARTITIONS = 3
PACE_S = 0.05
CALL_S = 10.0
QUICK: dict[str, Any] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "topic.metadata.refresh.interval.ms": 1000,
}


class Client(ABC):
    """``refusals``: names of errors by which it may be refused, and after which it has to go on by itself."""

    def __init__(self, name: str, account: Account, access: Access, topic: str, refusals: tuple[str, ...] = ()) -> None:
        self.name, self.account, self.access, self.topic = name, account, access, topic
        self.refusals = frozenset(refusals)
        self.count = 0
        self.stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to work, with the access that it has now."""
        self.stopping.clear()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends as programs should: what was sent is acknowledged, what was read is committed."""
        self.stopping.set()
        if self._thread is not None:
            self._thread.join(LIMIT_S)
            if self._thread.is_alive():
                self.account.failed(self.name, "it does not end")
            self._thread = None

    def move(self, access: Access) -> None:
        """Ends, and starts again with another access."""
        self.stop()
        self.access = access
        self.start()

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.account.failed(self.name, error)

    @abstractmethod
    def work(self) -> None:
        """Until ``stopping`` is set."""

    def next_value(self) -> tuple[bytes, int]:
        """The next record to write, and its partition."""
        self.count += 1
        return f"{self.name}/{self.count}".encode(), self.count % PARTITIONS

    def notice(self, error: KafkaError) -> None:
        if not error.fatal():
            self.account.noticed(self.name, error.name(), error.str())


class Writer(Client):
    """librdkafka's idempotent producer. ``login`` changes what it logs in with while it works."""

    producer: confluent_kafka.Producer

    def start(self) -> None:
        settings = {**QUICK, **self.access.librdkafka, "enable.idempotence": True, "linger.ms": 1, "error_cb": self.notice}
        self.producer = confluent_kafka.Producer({**settings, "message.timeout.ms": int(LIMIT_S * 1000)})
        super().start()

    def login(self, password: str) -> None:
        self.producer.set_sasl_credentials(self.access.user, password)

    def work(self) -> None:
        while not self.stopping.is_set():
            value, partition = self.next_value()
            try:
                self.producer.produce(self.topic, value, partition=partition, on_delivery=self.told)
            except KafkaException as error:
                self.refuse(error.args[0], value)
            self.producer.poll(PACE_S)
            time.sleep(PACE_S)
        if self.producer.flush(LIMIT_S):
            self.account.failed(self.name, "records are not acknowledged in the end")

    def told(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.refuse(error, message.value())
        else:
            self.account.acknowledged(self.name, (message.topic(), message.partition(), message.offset()), message.value())

    def refuse(self, error: KafkaError, value: bytes) -> None:
        if error.name() in self.refusals:
            self.account.refused(self.name, value)
        else:
            self.account.failed(self.name, f"{value!r}: {error.name()}: {error}")


class Transactions(Client):
    """librdkafka's transactional producer: three records a transaction.

    librdkafka also ends a transaction that no partition could be added to, which Kafka answers with INVALID_TXN_STATE, a fatal
    error (its issue 4849): after a refusal another producer takes its place.
    """

    producer: confluent_kafka.Producer

    def work(self) -> None:
        self.begin()
        while not self.stopping.is_set():
            told: list[tuple[KafkaError | None, Any]] = []
            self.producer.begin_transaction()
            refused = self.send(told)
            # A refusal that arrives between two records makes the next one fail with _STATE; the commit says the reason.
            error = self.asked(self.producer.commit_transaction) if refused in ("", "_STATE") else None
            if not refused and error is None:
                for _, message in told:
                    place = message.topic(), message.partition(), message.offset()
                    self.account.acknowledged(self.name, place, message.value())
            else:
                reasons = {refused, "" if error is None else error.name(), *(each.name() for each, _ in told if each is not None)}
                if not reasons & self.refusals:
                    raise AssertionError(f"a transaction ended with {error}, its records with {reasons}")
                self.account.refused(self.name)
                with contextlib.suppress(KafkaException):
                    self.producer.abort_transaction(CALL_S)
                self.begin()
            time.sleep(PACE_S)

    def begin(self) -> None:
        settings = {**QUICK, **self.access.librdkafka, "transactional.id": self.name, "linger.ms": 1, "error_cb": self.notice}
        self.producer = confluent_kafka.Producer(settings)
        self.asked(self.producer.init_transactions)

    def send(self, told: list[tuple[KafkaError | None, Any]]) -> str:
        """The records of a transaction; the name of the error where a topic is known to be refused."""
        for _ in range(3):
            value, partition = self.next_value()
            try:
                self.producer.produce(self.topic, value, partition=partition, on_delivery=lambda *both: told.append(both))
            except KafkaException as error:
                return str(error.args[0].name())
        return ""

    def asked(self, call: Any) -> KafkaError | None:
        """The call, until it succeeds; the error of one after which the transaction has to be aborted."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                call(CALL_S)
                return None
            except KafkaException as failed:
                error: KafkaError = failed.args[0]
                if error.txn_requires_abort() or (error.fatal() and self.refusals):
                    return error
                if not error.retriable() or time.monotonic() > deadline:
                    raise


class Reader(Client):
    """librdkafka's consumer in a group of its own, which commits what it has read."""

    def work(self) -> None:
        settings = {**QUICK, **self.access.librdkafka, "error_cb": self.notice, "group.id": self.name}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 50}
        consumer = confluent_kafka.Consumer({**settings, "isolation.level": "read_committed"})
        consumer.subscribe([self.topic])
        try:
            while not self.stopping.is_set():
                self.take(consumer, consumer.consume(100, 0.1))
        finally:
            consumer.close()

    def take(self, consumer: confluent_kafka.Consumer, messages: list[Any]) -> None:
        ends: dict[int, int] = {}
        for each in messages:
            error = each.error()
            if error is None:
                place = each.topic(), each.partition(), each.offset()
                self.account.delivered(self.name, self.name, place, each.value())
                ends[each.partition()] = each.offset() + 1
            elif error.name() in self.refusals:
                self.account.refused(self.name)
            else:
                raise AssertionError(f"{error.name()}: {error}")
        if ends and self.committed(consumer, ends):
            for partition, offset in ends.items():
                self.account.committed(self.name, self.topic, partition, offset)

    def committed(self, consumer: confluent_kafka.Consumer, ends: dict[int, int]) -> bool:
        """Whether the commit was acknowledged. One that the group's coordinator did not take because it moved is repeated with
        the next one."""
        try:
            consumer.commit(offsets=[TopicPartition(self.topic, *each) for each in ends.items()], asynchronous=False)
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            if error.name() in self.refusals:
                self.account.refused(self.name)
            elif "AUTH" in error.name() or error.fatal():
                raise
            else:
                self.account.noticed(self.name, error.name(), "commit")
            return False
        return True


class KafkaPythonWriter(Client):
    """kafka-python's idempotent producer, which waits for each record."""

    def work(self) -> None:
        producer = kafka.KafkaProducer(
            **self.access.python,
            acks="all",
            enable_idempotence=True,
            retry_backoff_ms=50,
            delivery_timeout_ms=int(LIMIT_S * 1000),
            max_block_ms=int(LIMIT_S * 1000),
        )
        try:
            while not self.stopping.is_set():
                value, partition = self.next_value()
                told = producer.send(self.topic, value, partition=partition).get(timeout=LIMIT_S)
                self.account.acknowledged(self.name, (self.topic, partition, told.offset), value)
                time.sleep(PACE_S)
        finally:
            producer.close(timeout=CALL_S)


class AiokafkaReader(Client):
    """aiokafka's consumer in a group of its own, which commits what it has read."""

    def work(self) -> None:
        asyncio.run(self.consume())

    async def consume(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            self.topic,
            **self.access.python,
            group_id=self.name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=50,
            retry_backoff_ms=50,
            metadata_max_age_ms=2000,
        )
        await consumer.start()
        try:
            while not self.stopping.is_set():
                found = await consumer.getmany(timeout_ms=100)
                ends = {}
                for at, records in found.items():
                    for each in records:
                        self.account.delivered(self.name, self.name, (at.topic, at.partition, each.offset), each.value)
                        ends[at] = each.offset + 1
                if ends:
                    await self.commit(consumer, ends)
        finally:
            with contextlib.suppress(asyncio.CancelledError):  # of a fetch that waits to be tried again
                await consumer.stop()

    async def commit(self, consumer: Any, ends: dict[Any, int]) -> None:
        try:
            await consumer.commit(ends)
        except (aiokafka.errors.CommitFailedError, aiokafka.errors.RebalanceInProgressError) as error:
            self.account.noticed(self.name, type(error).__name__, "commit")
            return
        for at, offset in ends.items():
            self.account.committed(self.name, at.topic, at.partition, offset)
