"""One client of the transactional workload, in a process of its own, to be stopped, paused and killed; its history is a file.

    python -m tests.transactions.worker ROLE --name NAME --bootstrap HOST:PORT --history FILE [--group G --protocol P]

Roles: ``producer`` (transactions over the input topic, about half of them aborted), ``transformer`` (consumes the input, writes
one output for each record, in one transaction with its offsets), ``reader`` (reads both topics, as read_committed or not, with
seeks). SIGTERM ends it after what it is at.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tidelog.testing.checker import Recorder

INPUT, OUTPUT, PARTITIONS = "in", "out", 3
TRANSACTION_TIMEOUT_MS = 10_000
CALL_S = 5.0
ABORT_SHARE = 0.5
QUICK: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "socket.timeout.ms": 4000,
    "topic.metadata.refresh.interval.ms": 2000,
}
stopping = threading.Event()


def add_settings(path: Path | None) -> None:
    """Settings that every client of this process gets."""
    if path is not None:
        QUICK.update(json.loads(path.read_text()))


class Restart(Exception):
    """This client cannot go on; a new one, with a new name, can."""


def place(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


class Transactions:
    """A transactional producer and its notes. A new one is made after a fatal error."""

    def __init__(self, args: argparse.Namespace, recorder: Recorder, name: str) -> None:
        self.name, self.recorder = name, recorder
        self.count = 0
        self.pending: set[str] = set()
        self.purged = False
        settings = {
            **QUICK,
            "bootstrap.servers": args.bootstrap,
            "transactional.id": args.transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 1,
        }
        self.producer = Producer(settings)
        while not stopping.is_set():
            try:
                self.producer.init_transactions(CALL_S)
                return
            except KafkaException as failed:
                if not failed.args[0].retriable():
                    raise Restart(str(failed)) from failed

    def begin(self) -> str:
        self.count += 1
        txn = f"{self.name}/{self.count}"
        try:
            self.producer.begin_transaction()
        except KafkaException as failed:
            raise Restart(str(failed)) from failed
        self.recorder.note(self.name, "ok", "begin", txn=txn)
        return txn

    def send(self, topic: str, partition: int, value: str, txn: str, **more: str) -> None:
        self.recorder.note(self.name, "invoke", "send", partition=f"{topic}-{partition}", value=value, txn=txn, **more)
        self.pending.add(value)
        try:
            self.producer.produce(topic, value, partition=partition, on_delivery=self.delivered)
        except (KafkaException, BufferError) as failed:
            self.pending.discard(value)
            self.recorder.note(self.name, "fail", "send", value=value)
            raise Restart(str(failed)) from failed
        self.producer.poll(0)

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        value = message.value().decode()
        self.pending.discard(value)
        if error is None:
            self.recorder.note(self.name, "ok", "send", value=value, offset=message.offset())
        else:
            self.purged = True
            self.recorder.note(self.name, "info", "send", value=value, error=error.name())

    def all_sent(self) -> bool:
        """Whether all records of the transaction were acknowledged."""
        deadline = time.monotonic() + CALL_S * 2
        while self.pending and time.monotonic() < deadline:
            self.producer.poll(0.05)
        return not self.pending

    def end(self, txn: str, commit: bool) -> bool:
        """Whether it was committed. Restart when the producer is of no use any more."""
        if commit and self.all_sent() and self.asked(txn, "commit", self.producer.commit_transaction):
            return True
        self.asked(txn, "abort", self.producer.abort_transaction)
        if self.purged:
            # librdkafka 2.16 gives the sequences of what it purged to the next transaction. Where a purged record had been
            # written and only its answer was lost, any broker takes the next record for its repetition: acknowledged, committed,
            # and not there. A new producer has another epoch. See tests/interop/test_purged_records.py.
            raise Restart("records were purged")
        return False

    def asked(self, txn: str, op: str, call: Any) -> bool:
        """Ask until there is an answer."""
        while True:
            self.recorder.note(self.name, "invoke", op, txn=txn)
            try:
                call(CALL_S)
            except KafkaException as failed:
                error = failed.args[0]
                self.recorder.note(self.name, "info", op, txn=txn, error=error.name())
                if error.fatal() or (op == "abort" and not error.retriable()):
                    raise Restart(str(failed)) from failed
                if error.txn_requires_abort():
                    return False
                if not error.retriable():
                    raise Restart(str(failed)) from failed
            else:
                self.recorder.note(self.name, "ok", op, txn=txn)
                return True


def produce(args: argparse.Namespace, recorder: Recorder, name: str, rng: random.Random) -> None:
    transactions = Transactions(args, recorder, name)
    while not stopping.is_set():
        txn = transactions.begin()
        for number in range(rng.randint(1, 6)):
            transactions.send(INPUT, rng.randrange(PARTITIONS), f"{txn}/{number}", txn)
            if rng.random() < 0.05:
                time.sleep(rng.random() * 0.05)
        transactions.end(txn, rng.random() >= ABORT_SHARE)
        time.sleep(args.pace * rng.random())


class Transformer:
    """A member of a group that writes an output for each input."""

    def __init__(self, args: argparse.Namespace, recorder: Recorder, name: str, rng: random.Random) -> None:
        self.args, self.recorder, self.name, self.rng = args, recorder, name, rng
        self.transactions = Transactions(args, recorder, name)
        self.rebalanced = False
        settings = {
            **QUICK,
            "bootstrap.servers": args.bootstrap,
            "group.id": args.group,
            "group.protocol": args.protocol,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "max.poll.interval.ms": 60_000,
        }
        if args.protocol == "classic":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        self.consumer = Consumer(settings)
        self.consumer.subscribe([INPUT], on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.revoked)

    def positions(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where the group stands, as noted."""
        while True:
            self.recorder.note(self.name, "invoke", "fetch")
            try:
                found = self.consumer.committed(partitions, CALL_S)
            except KafkaException as failed:
                if stopping.is_set() or not failed.args[0].retriable():
                    raise Restart(str(failed)) from failed
                continue
            bad = [each for each in found if each.error is not None]
            if bad:
                raise Restart(str(bad[0].error))
            told = {place(each): max(each.offset, -1) for each in found}
            self.recorder.note(self.name, "ok", "fetch", group=self.args.group, offsets=told)
            start = [TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in found]
            self.recorder.note(self.name, "ok", "position", positions={place(each): each.offset for each in start})
            return start

    def assigned(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self.rebalanced = True
        if not partitions:
            return
        try:
            start = self.positions(partitions)
        except Restart:
            start = partitions  # it will not read: the loop sees the failure when it looks for itself
            self.recorder.note(self.name, "ok", "position", positions={place(each): None for each in start})
        if self.args.protocol == "consumer":
            consumer.incremental_assign(start)
        else:
            consumer.assign(start)

    def revoked(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self.rebalanced = True
        self.recorder.note(self.name, "ok", "revoke", partitions=[place(each) for each in partitions])

    def rewind(self) -> None:
        """Back to where the group stands."""
        mine = self.consumer.assignment()
        if mine:
            for each in self.positions(mine):
                try:
                    self.consumer.seek(each)
                except KafkaException as failed:
                    raise Restart(str(failed)) from failed

    def gather(self) -> list[Any]:
        """Some records; none when there was a rebalance between."""
        self.rebalanced = False
        found: list[Any] = []
        wanted = self.rng.randint(1, 12)
        message = self.consumer.poll(0.2)
        while message is not None:
            if message.error() is None:
                found.append(message)
            elif message.error().fatal():
                raise Restart(str(message.error()))
            message = self.consumer.poll(0) if len(found) < wanted and not self.rebalanced else None
        if self.rebalanced:
            if found:
                self.rewind()
            return []
        return found

    def run(self) -> None:
        try:
            while not stopping.is_set():
                messages = self.gather()
                if messages and not self.transform(messages):
                    self.rewind()
        finally:
            self.consumer.close()

    def transform(self, messages: list[Any]) -> bool:
        """Whether it was committed."""
        records = [[f"{each.topic()}-{each.partition()}", each.offset(), each.value().decode()] for each in messages]
        self.recorder.note(self.name, "ok", "poll", records=records)
        txn = self.transactions.begin()
        for number, (_, _, value) in enumerate(records):
            self.transactions.send(OUTPUT, self.rng.randrange(PARTITIONS), f"{txn}/{number}", txn, source=value)
        ends: dict[int, int] = {}
        for each in messages:
            ends[each.partition()] = each.offset() + 1
        offsets = {f"{INPUT}-{partition}": offset for partition, offset in ends.items()}
        self.recorder.note(self.name, "invoke", "offsets", group=self.args.group, offsets=offsets, txn=txn)
        parts = [TopicPartition(INPUT, partition, offset) for partition, offset in ends.items()]
        try:
            self.transactions.producer.send_offsets_to_transaction(parts, self.consumer.consumer_group_metadata(), CALL_S)
        except KafkaException as failed:
            self.recorder.note(self.name, "info", "offsets", group=self.args.group, txn=txn)
            if failed.args[0].fatal():
                raise Restart(str(failed)) from failed
            self.transactions.end(txn, False)
            return False
        self.recorder.note(self.name, "ok", "offsets", group=self.args.group, txn=txn)
        return self.transactions.end(txn, self.rng.random() >= ABORT_SHARE / 2)


def read(args: argparse.Namespace, recorder: Recorder, name: str, rng: random.Random) -> None:
    settings = {
        **QUICK,
        "bootstrap.servers": args.bootstrap,
        "group.id": name,
        "isolation.level": args.isolation,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 50,
    }
    consumer = Consumer(settings)
    try:
        parts = [TopicPartition(topic, partition, 0) for topic in (INPUT, OUTPUT) for partition in range(PARTITIONS)]
        recorder.note(name, "ok", "position", positions={place(each): 0 for each in parts})
        consumer.assign(parts)
        reached = {place(each): 0 for each in parts}
        while not stopping.is_set():
            messages = consumer.consume(rng.randint(1, 200), 0.2)
            failed = [each.error() for each in messages if each.error() is not None]
            if any(not error.retriable() and error.code() > 0 for error in failed):
                raise Restart(str(failed[0]))
            good = [each for each in messages if each.error() is None]
            if good:
                records = [[f"{each.topic()}-{each.partition()}", each.offset(), each.value().decode()] for each in good]
                recorder.note(name, "ok", "poll", isolation=args.isolation, records=records)
                reached.update({partition: offset + 1 for partition, offset, _ in records})
            if rng.random() < 0.01:
                chosen = rng.choice(parts)
                chosen.offset = max(0, reached[place(chosen)] - rng.randrange(300))
                consumer.assign(
                    [
                        chosen if each is chosen else TopicPartition(each.topic, each.partition, reached[place(each)])
                        for each in parts
                    ]
                )
                recorder.note(name, "ok", "position", positions={**reached, place(chosen): chosen.offset})
                reached[place(chosen)] = chosen.offset
    finally:
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("producer", "transformer", "reader"))
    for flag in ("name", "bootstrap", "history"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--transactional-id")
    parser.add_argument("--group")
    parser.add_argument("--protocol", default="classic")
    parser.add_argument("--isolation", default="read_committed")
    parser.add_argument("--pace", type=float, default=0.01, help="longest pause between two transactions, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--config", type=Path, help="more settings of librdkafka, as JSON")
    args = parser.parse_args()
    add_settings(args.config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    rng = random.Random(args.seed)
    life = 0
    with Recorder(args.history) as recorder:
        while not stopping.is_set():
            life += 1
            name = f"{args.name}.{life}"
            try:
                if args.role == "producer":
                    produce(args, recorder, name, rng)
                elif args.role == "reader":
                    read(args, recorder, name, rng)
                else:
                    Transformer(args, recorder, name, rng).run()
            except Restart as reason:
                print(f"{name} ends: {reason}", flush=True)


if __name__ == "__main__":
    main()
