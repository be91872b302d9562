"""What tidelog and Apache Kafka make of the same flipped bit in each file of a data directory: the table of docs/robustness.md.

``make rot-table``, or ``python -m tests.interop.rot_table FOLDER [KIND [CASE]]``, KIND being tidelog or apache. Each node writes
one data directory, which is stopped (clean) or killed after another start (unclean), copied once for each kind of damage,
damaged, started and read. One line a case.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, NodeFailed
from tests.interop.rot import BATCHES, DAMAGES, RECORDS, SETTINGS, TOPIC, Seen, flip, in_batch, in_file, observe

FIRST_MS = 1_700_000_000_000
ALL = BATCHES * RECORDS
TRANSACTIONS = "txns"
MIDDLE = ALL // 2
META = "__cluster_metadata-0"


def write(node: Node) -> None:
    """One topic in three batches with timestamps one ms apart; one with a committed, an aborted and a committed transaction."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for made in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(TRANSACTIONS, 1, 1)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True, "linger.ms": 200})
    for batch in range(BATCHES):
        for number in range(batch * RECORDS, (batch + 1) * RECORDS):
            producer.produce(TOPIC, b"%d" % number, partition=0, timestamp=FIRST_MS + number)
        assert producer.flush(30) == 0
    writer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "rot"})
    writer.init_transactions(30)
    for commit in (True, False, True):
        writer.begin_transaction()
        for _ in range(5):
            writer.produce(TRANSACTIONS, b"x", partition=0)
        writer.flush(30)  # an abort purges what was not sent
        writer.commit_transaction(30) if commit else writer.abort_transaction(30)


def last_batch(at: int) -> Callable[[Path], None]:
    """A bit in the last batch, which is the last of all that was written."""
    return in_batch(BATCHES - 1, at)


def in_list(name: str, directory: str, topic: str) -> Callable[[Path], None]:
    """A bit in the last digit of a topic's entry in an offset checkpoint."""

    def damage(data: Path) -> None:
        path = data / directory / name
        content = path.read_bytes()
        start = content.index(f"{topic} 0 ".encode())
        flip(path, content.index(b"\n", start) - 1)

    return damage


def list_of_damage(data: Path) -> None:
    """No flip: a file of tidelog's beside the segments, which the other broker must pass over."""
    (data / f"{TOPIC}-0" / "tidelog-damaged").write_bytes(b"5ce2cd54\n0\n")
    (data / f"{TOPIC}-0" / "00000000000000000000.log.0-1.cut").write_bytes(b"x" * 400)
    (data / "tidelog-flushed-checkpoint").write_bytes(b"00000000\n")


def raised_start(data: Path) -> None:
    """A log start of 0 turned into 256 by a bit, if the file has an entry; a node writes none for 0."""
    path = data / "log-start-offset-checkpoint"
    path.write_bytes(b"0\n1\n%s 0 512\n" % TOPIC.encode())


CASES: dict[str, Callable[[Path], None]] = {
    "(no damage)": lambda data: None,
    "(files of tidelog's)": list_of_damage,
    "segment, records": DAMAGES["segment, records"],
    "segment, length": DAMAGES["segment, length"],
    "segment, base offset": DAMAGES["segment, base offset"],
    "segment, leader epoch": in_batch(1, 14),
    "segment, last batch": last_batch(100),
    "segment, last batch, epoch": last_batch(14),
    "index": DAMAGES["index"],
    "time index, timestamp": in_file("*.timeindex", 5),
    "time index, offset": in_file("*.timeindex", 10),
    "transaction index": in_file("*.txnindex", 9, f"{TRANSACTIONS}-0"),
    "producer snapshot": DAMAGES["producer snapshot"],
    "leader-epoch-checkpoint": DAMAGES["leader-epoch-checkpoint"],
    "partition.metadata": DAMAGES["partition.metadata"],
    "recovery-point-offset-checkpoint": in_list("recovery-point-offset-checkpoint", ".", TOPIC),
    "log-start-offset-checkpoint": raised_start,
    "replication-offset-checkpoint": in_list("replication-offset-checkpoint", ".", TOPIC),
    "meta.properties": DAMAGES["meta.properties"],
    "quorum-state": DAMAGES["quorum-state"],
    "metadata log": DAMAGES["metadata log"],
    "metadata snapshot": in_file("*.checkpoint", 100, META),
    "bootstrap snapshot": in_file("bootstrap.checkpoint", 100, "."),
}


def more(node: Node) -> str:
    """Committed records of the transactions, and the offset that a search by time finds for the middle record."""
    consumer = Consumer(
        {"bootstrap.servers": node.bootstrap, "group.id": "more", "enable.auto.commit": False, "enable.partition.eof": True,
         "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(TRANSACTIONS, 0, 0)])
        found, deadline = 0, time.monotonic() + 8
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                break
            found += 1
        by_time = consumer.offsets_for_times([TopicPartition(TOPIC, 0, FIRST_MS + MIDDLE)], timeout=10)[0].offset
        return f"committed={found} of 10, by time={by_time} of {MIDDLE}"
    except confluent_kafka.KafkaException as problem:
        return f"{problem}"
    finally:
        consumer.close()


def template(kind: str, home: Path, java: JavaSide | None, *, clean: bool) -> Node:
    """A data directory that was written and stopped in order, or killed after one more start."""
    node = Node(kind, home, java, SETTINGS)
    node.start()
    write(node)
    node.stop()
    if not clean:
        node.start()
        time.sleep(2)
        node.kill()
    return node


def case(kind: str, made: Node, home: Path, damage: Callable[[Path], None]) -> tuple[Seen, str]:
    """A copy of the directory, damaged, started and read."""
    shutil.copytree(made.home, home)
    node = Node(kind, home, made.java, SETTINGS, ports=made.ports)
    try:
        damage(node.data)
        seen = observe(node, kind)
        return seen, more(node) if seen.started and TRANSACTIONS in seen.topics else ""
    finally:
        node.kill()


def main(folder: Path, kinds: list[str], only: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    java = JavaSide(folder / "java.log")
    for kind in kinds:
        for clean in (True, False):
            stop = "clean" if clean else "unclean"
            made = template(kind, folder / f"{kind}-{stop}", java if kind == "apache" else None, clean=clean)
            for number, (name, damage) in enumerate(CASES.items()):
                if only not in name:
                    continue
                home = folder / f"{kind}-{stop}-{number}"
                try:
                    seen, rest = case(kind, made, home, damage)
                except (IndexError, ValueError, AssertionError, NodeFailed) as problem:
                    print(f"{kind} | {stop} | {name} | not tried: {type(problem).__name__} {str(problem)[:100]}", flush=True)
                else:
                    print(f"{kind} | {stop} | {name} | {seen} {rest}", flush=True)
                shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:3] or ["tidelog", "apache"], *sys.argv[3:4])
