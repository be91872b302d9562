"""Kafka Streams and Flink, exactly once, while they and the broker are killed with -9 again and again.

``python -m tests.systems.exactly_once streams --kills 30``, or ``flink``; ``--broker apache`` runs the same against Apache Kafka,
``--protocol streams`` with a streams group (KIP-1071).

Streams counts words with a state store, a repartition and a changelog topic, and writes every update of every count: for each
word the output has to be 1, 2, 3 ... n, each once, where n is how often the word was written. Flink relays records: the output
has to have each of them once. Both are read with read_committed, to the end, after the last kill.
"""

from __future__ import annotations

import argparse
import collections
import functools
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.java import JavaSide
from tests.interop.nodes import Node
from tools.jars import compiled_against

HERE = Path(__file__).parent
FLAGS = ("-Xms128m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-Xshare:auto")
OPENS = (  # Flink and its serialisers look into the JDK
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)
LOG4J = HERE.parent / "interop" / "setup" / "log4j2.properties"
WORDS = tuple(f"word{number:02}" for number in range(40))
LINES_A_SECOND = 400
STUCK_S = 180
"""Nothing new in the output for so long, with everything running: it is stuck."""


class Wrong(AssertionError):
    """The output is not what exactly once allows."""


def quiet(_: confluent_kafka.KafkaError) -> None:
    """A broker that is down now and then is no news here."""


@dataclass
class App:
    """A JVM with one of the programs in it."""

    name: str
    log: Path
    arguments: Callable[[], list[str]]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        classes, jars = compiled_against(HERE / self.name)
        main = "WordCount" if self.name == "streams" else "Relay"
        java = [
            "java",
            *FLAGS,
            *OPENS,
            f"-Dlog4j2.configurationFile={LOG4J}",
            "-Dlog.level=warn",
            "-cp",
            f"{classes}:{jars}/*",
            main,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*java, *self.arguments()], stdout=log, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def check(self) -> None:
        """Wrong when it has ended by itself."""
        if self.process is not None and self.process.poll() is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])
            raise Wrong(f"{self.name} ended with {self.process.returncode}:\n{tail}")


@dataclass
class Input:
    """A producer that writes on and on and knows what it wrote: idempotent, for as long as it takes."""

    bootstrap: str
    topic: str
    make: Callable[[int], bytes]
    written: list[bytes] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def finish(self) -> None:
        self.stopping.set()
        assert self.thread is not None
        self.thread.join()
        if self.failed:
            raise Wrong(f"the input could not be written: {self.failed[0]}")

    def _run(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": 600_000,
            "error_cb": quiet,
            "log_level": 0,
        }
        producer = confluent_kafka.Producer(settings)

        def told(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
            if error is not None:
                self.failed.append(str(error))

        number = 0
        while not self.stopping.is_set():
            for _ in range(LINES_A_SECOND // 20):
                value = self.make(number)
                producer.produce(self.topic, key=b"%d" % number, value=value, on_delivery=told)
                self.written.append(value)
                number += 1
            producer.poll(0)
            self.stopping.wait(0.05)
        if producer.flush(300):
            self.failed.append("records were not acknowledged within 300 s of the last kill")


def committed(bootstrap: str, topic: str, partitions: int) -> Iterator[confluent_kafka.Message | None]:
    """The committed records of a topic from its beginning, and None whenever there is none for a second."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "error_cb": quiet,
        "log_level": 0,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    try:
        while True:
            message = consumer.poll(1.0)
            if message is None or message.error() is None:
                yield message
    finally:
        consumer.close()


def judge_counts(written: list[bytes], output: Iterator[confluent_kafka.Message | None]) -> str:
    """Each word's counts are 1, 2, 3 ... up to how often it was written."""
    expected = collections.Counter(word for line in written for word in line.split())
    seen: collections.Counter[bytes] = collections.Counter()
    missing, silent = expected.total(), 0
    while missing:
        message = next(output)
        if message is None:
            silent += 1
            if silent > STUCK_S:
                raise Wrong(f"{missing} updates of {expected.total()} never came")
            continue
        silent = 0
        word, (count,) = message.key(), struct.unpack(">q", message.value())
        if count != seen[word] + 1 or count > expected[word]:
            raise Wrong(
                f"{word!r} was counted to {count} after {seen[word]}, of {expected[word]} written; offset {message.offset()}"
            )
        seen[word] = count
        missing -= 1
    more = [message for message in (next(output) for _ in range(3)) if message is not None]
    if more:
        raise Wrong(f"more than was written: {more[0].key()!r} at offset {more[0].offset()}")
    return f"{len(written):,} lines, {expected.total():,} words counted, each once and in order"


def judge_relay(written: list[bytes], output: Iterator[confluent_kafka.Message | None]) -> str:
    """Each record comes once."""
    missing, seen, silent = set(written), set[bytes](), 0
    assert len(missing) == len(written), "the input's values have to differ"
    while missing or silent < 3:
        message = next(output)
        if message is None:
            silent += 1
            if silent > STUCK_S:
                raise Wrong(f"{len(missing)} records of {len(written)} never came, such as {next(iter(missing))!r}")
            continue
        silent = 0
        value = message.value()
        if value in seen:
            raise Wrong(f"{value!r} came twice, the second time at {message.partition()}:{message.offset()}")
        if value not in missing:
            raise Wrong(f"{value!r} was never written")
        seen.add(value)
        missing.remove(value)
    return f"{len(written):,} records relayed, each once"


def latest_checkpoint(folder: Path) -> str:
    """The newest complete checkpoint; empty when there is none."""
    complete = sorted(folder.glob("*/chk-*/_metadata"), key=lambda path: path.stat().st_mtime_ns)
    return str(complete[-1].parent) if complete else ""


def apps_of(name: str, home: Path, bootstrap: str, protocol: str) -> list[App]:
    if name == "streams":

        def arguments(number: int) -> Callable[[], list[str]]:
            return lambda: [bootstrap, str(home / f"state-{number}"), protocol]

        return [App(name, home / f"streams-{number}.log", arguments(number)) for number in range(2)]
    checkpoints = home / "checkpoints"
    return [App(name, home / "flink.log", lambda: [bootstrap, str(checkpoints), latest_checkpoint(checkpoints)])]


def run(
    name: str, broker: str, kills: int, seed: int, home: Path, say: Callable[[str], None] = print, protocol: str = "classic"
) -> str:
    """The whole of it; what was found, in a line. Raises Wrong. ``protocol``: the group protocol of Streams."""
    rng, victims = random.Random(seed), random.Random(seed)  # the input is made in a thread of its own
    java = JavaSide(home / "java.log") if broker == "apache" else None
    properties = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "500",
        # Streams groups: a killed member is missed as soon as one of the classic protocol.
        "group.streams.initial.rebalance.delay.ms": "500",
        "group.streams.heartbeat.interval.ms": "1000",
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.session.timeout.ms": "6000",
        "group.streams.min.session.timeout.ms": "6000",
    }
    node = Node(broker, home / "node", java, properties, features={})
    apps: list[App] = []
    counts: collections.Counter[str] = collections.Counter()
    try:
        node.start()
        source, target = ("lines", "counts") if name == "streams" else ("in", "out")
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(topic, 4, 1) for topic in (source, target)]).values():
            future.result()
        apps = apps_of(name, home, node.bootstrap, protocol)
        for app in apps:
            app.start()
        make = (
            (lambda number: b" ".join(rng.choice(WORDS).encode() for _ in range(5)))
            if name == "streams"
            else (lambda number: b"record-%d" % number)
        )
        written = Input(node.bootstrap, source, make)
        written.start()
        time.sleep(10)
        for number in range(kills):
            victim = victims.choice(["broker", *(app.log.stem for app in apps)])
            counts[victim.partition("-")[0]] += 1
            if victim == "broker":
                node.kill()
                time.sleep(victims.uniform(0, 1.5))
                node.start()
            else:
                app = next(app for app in apps if app.log.stem == victim)
                app.kill()
                time.sleep(victims.uniform(0, 1))
                app.start()
            say(f"kill {number + 1} of {kills}: {victim}; {len(written.written):,} written")
            time.sleep(victims.uniform(2, 9))
            for app in apps:
                app.check()
        written.finish()
        judge = judge_counts if name == "streams" else judge_relay
        found = judge(written.written, committed(node.bootstrap, target, 4))
        killed = ", ".join(f"{count} of the {victim}" for victim, count in sorted(counts.items()))
        return f"{name} on {broker}: {found}; killed with -9: {killed}"
    finally:
        for app in apps:
            app.kill()
        node.kill()
        if java is not None:
            java.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("streams", "flink"))
    parser.add_argument("--broker", choices=("tidelog", "apache"), default="tidelog")
    parser.add_argument("--protocol", choices=("classic", "streams"), default="classic", help="group protocol of Streams")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix=f"tidelog-{args.name}-"))
    print(f"everything is kept in {home}", file=sys.stderr)
    try:
        say = functools.partial(print, file=sys.stderr, flush=True)
        print(run(args.name, args.broker, args.kills, args.seed, home, say, args.protocol))
    except Wrong as wrong:
        print(f"WRONG: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
