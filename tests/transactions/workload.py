"""Transactional clients on a real node, tormented; what they recorded is judged by ``tidelog.testing.checker``.

Producers, consume-transform-produce in two groups (classic and, where the node has it, KIP-848), and readers, with librdkafka
and Kafka's Java clients. The nemesis kills the node and clients with -9, pauses them, spoils the network between, and moves the
node's clock. In the end all is well again: open transactions must end, everything is read to the end, and the histories must
hold.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.faults.proxy import TO_BROKER, TO_CLIENT, Proxy
from tests.interop.java import JVM_FLAGS, LOG4J, JavaSide
from tests.interop.nodes import FEATURES, ROOT, Node, environment
from tests.transactions.shifted_node import write_offset
from tests.transactions.worker import INPUT, OUTPUT, PARTITIONS, QUICK
from tidelog.testing.checker import Recorder, Verdict, check
from tools.jars import compiled, ensure

SOURCE = Path(__file__).parent / "JavaWorker.java"
PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
}
GROUPS = ("group-classic", "group-consumer")
END_LIMIT_S = 90
WORKER_LIMIT_S = 25


def java_worker() -> Path:
    """The folder with ``JavaWorker.class``."""
    return compiled("java-worker", [SOURCE], ensure())


class ShiftableNode(Node):
    """A node with the proxy's address, and with a clock of its own where it is one of ours."""

    @property
    def clock(self) -> Path:
        return self.home / "clock"

    def command(self) -> list[str]:
        if self.kind == "apache":
            return super().command()
        if not self.clock.exists():
            write_offset(self.clock, 0)
        script = Path(__file__).parent / "shifted_node.py"
        return [sys.executable, str(script), str(self.clock), str(self.write_properties())]


@dataclass
class Client:
    """A worker process; every start is another life with another name and another file."""

    name: str
    command: Callable[[str, Path], list[str]]
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    lives: int = 0
    histories: list[Path] = field(default_factory=list)

    def start(self) -> None:
        self.lives += 1
        name = f"{self.name}-{self.lives}"
        path = self.folder / f"{name}.jsonl"
        self.histories.append(path)
        path.touch()
        with (self.folder / f"{name}.log").open("wb") as log:
            self.process = subprocess.Popen(
                self.command(name, path), stdout=log, stderr=subprocess.STDOUT, env=worker_environment(), cwd=ROOT
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def finish(self) -> None:
        """SIGTERM has been sent; kill -9 for those that do not come to an end."""
        assert self.process is not None
        try:
            self.process.wait(WORKER_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None


def worker_environment() -> dict[str, str]:
    found = environment()
    return {**found, "PYTHONPATH": f"{ROOT}:{found['PYTHONPATH']}"}


def clients(bootstrap: str, folder: Path, seed: int, *, consumer_protocol: bool, pace: float) -> list[Client]:
    """Whom the workload has."""
    second = "consumer" if consumer_protocol else "classic"

    def python(role: str, *more: str) -> Callable[[str, Path], list[str]]:
        def command(name: str, path: Path) -> list[str]:
            base = [sys.executable, "-m", "tests.transactions.worker", role, "--name", name, "--bootstrap", bootstrap]
            return [*base, "--history", str(path), "--seed", str(seed), "--pace", str(pace), *more]

        return command

    def java(name: str, path: Path) -> list[str]:
        flags = [*JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=error", "-cp", f"{java_worker()}:{ensure()}/*"]
        roles = ["producer:java-producer", f"transformer:java-classic:{GROUPS[0]}:classic"]
        roles.append(f"transformer:java-consumer:{GROUPS[1]}:{second}")
        return ["java", *flags, "JavaWorker", bootstrap, str(path), name, str(seed), str(int(pace * 1000)), *roles]

    def transform(number: int, protocol: str) -> Callable[[str, Path], list[str]]:
        return python(
            "transformer", "--transactional-id", f"transformer-{number}", "--group", GROUPS[number], "--protocol", protocol
        )

    wanted = {
        "producer-a": python("producer", "--transactional-id", "producer-a"),
        "producer-b": python("producer", "--transactional-id", "producer-b"),
        "transformer-0": transform(0, "classic"),
        "transformer-1": transform(1, second),
        "java": java,
        "reader": python("reader"),
        "dirty": python("reader", "--isolation", "read_uncommitted"),
    }
    return [Client(name, command, folder) for name, command in wanted.items()]


@dataclass
class Run:
    """One workload. ``features``: the node's levels. ``clock``: whether its clock may be moved."""

    home: Path
    seed: int
    kind: str = "tidelog"
    java: JavaSide | None = None
    features: Mapping[str, int] = field(default_factory=lambda: dict(FEATURES))
    failures: int = 0
    told: dict[str, int] = field(default_factory=dict)
    pace: float = 0.01

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.histories = self.home / "histories"
        self.histories.mkdir(parents=True)
        self.node = ShiftableNode(self.kind, self.home / "node", self.java, dict(PROPERTIES), self.features)
        self.proxy = Proxy(self.node.ports[0], seed=self.seed)
        self.clients: list[Client] = []
        self.began = time.monotonic()
        self._counted: dict[Path, int] = {}
        self.counts = {"commit": 0, "abort": 0}

    @property
    def quick(self) -> Mapping[str, Any]:
        """The settings of the clients in this process."""
        return QUICK

    def go(self, seconds: float, *, commits: int, aborts: int, failures: int) -> Verdict:
        """Torment until the time is up and there is enough of everything, or three times that; then judge."""
        with self.proxy:
            self.node.properties = {**PROPERTIES, "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.proxy.port}"}
            try:
                self._begin()
                end, last = time.monotonic() + seconds, time.monotonic() + seconds * 3
                while time.monotonic() < last:
                    self.count()
                    enough = self.counts["commit"] >= commits and self.counts["abort"] >= aborts
                    if time.monotonic() < end:
                        self.torment()
                    elif self.failures < failures:
                        (self.kill_node if self.kind == "apache" else self.fail_coordinators)()
                    elif enough:
                        break
                    else:
                        time.sleep(0.2)
                self._end()
                self._read_all()
            finally:
                for client in self.clients:
                    client.kill()
                self.node.kill()
        return check(*sorted(self.histories.glob("*.jsonl")))

    def _begin(self) -> None:
        self.node.start()
        bootstrap = f"127.0.0.1:{self.proxy.port}"
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        made = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in (INPUT, OUTPUT)])
        for each in made.values():
            each.result(30)
        consumer_protocol = self.features.get("group.version", 0) >= 1
        self.clients = clients(bootstrap, self.histories, self.seed, consumer_protocol=consumer_protocol, pace=self.pace)
        for client in self.clients:
            client.start()

    def count(self) -> None:
        """Commits and aborts that were acknowledged so far."""
        for client in self.clients:
            for path in client.histories:
                with path.open("rb") as file:
                    file.seek(self._counted.get(path, 0))
                    data = file.read()
                data = data[: data.rfind(b"\n") + 1]
                self._counted[path] = self._counted.get(path, 0) + len(data)
                for op in self.counts:
                    self.counts[op] += data.count(f'"type":"ok","op":"{op}"'.encode())

    # -- the nemesis ---------------------------------------------------------------------------------------------------------

    def torment(self) -> None:
        """One fault, and some peace."""
        deeds = {
            self.kill_node: 10,
            self.pause_node: 2,
            self.kill_client: 3,
            self.pause_client: 1,
            self.spoil_network: 4,
            self.drop_connections: 2,
        }
        if self.kind != "apache":
            deeds |= {self.move_clock: 2, self.fail_coordinators: 5}
        (deed,) = self.rng.choices(list(deeds), list(deeds.values()))
        self.told[deed.__name__] = self.told.get(deed.__name__, 0) + 1
        deed()
        time.sleep(self.rng.uniform(0.1, 1.0))

    def kill_node(self) -> None:
        """What coordinates groups and transactions is gone, and is loaded again."""
        self.node.kill()
        self.failures += 1
        if self.rng.random() < 0.15:  # once more while it starts
            self.node.launch()
            time.sleep(self.rng.uniform(0, 0.5))
            self.node.kill()
            self.failures += 1
        self.node.start()
        time.sleep(self.rng.uniform(0.2, 0.8))

    def fail_coordinators(self) -> None:
        """They fail without the node: whatever waits is refused, their logs are read again."""
        assert self.node.process is not None
        for _ in range(self.rng.randint(1, 8)):
            self.node.process.send_signal(signal.SIGUSR1)
            self.failures += 1
            time.sleep(self.rng.uniform(0.05, 0.4))

    def pause_node(self) -> None:
        assert self.node.process is not None
        self._pause(self.node.process, self.rng.uniform(0.2, 3))

    def kill_client(self) -> None:
        client = self.rng.choice(self.clients)
        client.kill()
        time.sleep(self.rng.uniform(0, 0.5))
        client.start()

    def pause_client(self) -> None:
        process = self.rng.choice(self.clients).process
        if process is not None:
            self._pause(process, self.rng.choice((0.5, 2, 9)))

    def _pause(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    def spoil_network(self) -> None:
        kind = self.rng.choice(("delay", "stall", "requests", "answers"))
        if kind == "delay":
            self.proxy.delay(self.rng.uniform(0, 0.2), self.rng.uniform(0, 0.3))
        elif kind == "stall":
            self.proxy.stall()
        else:
            self.proxy.cut(TO_BROKER if kind == "requests" else TO_CLIENT)
        time.sleep(self.rng.uniform(0.2, 2))
        if self.rng.random() < 0.5:
            self.proxy.drop(self.rng.random())
        self.proxy.heal()

    def drop_connections(self) -> None:
        for _ in range(self.rng.randint(1, 10)):
            self.proxy.drop(self.rng.random())
            time.sleep(self.rng.uniform(0, 0.2))

    def move_clock(self) -> None:
        """Up to half a minute either way, and back later: longer than transactions may take."""
        write_offset(self.node.clock, self.rng.choice((0, self.rng.randint(-30_000, 30_000))))

    # -- the end -------------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self.proxy.heal()
        if self.kind != "apache":
            write_offset(self.node.clock, 0)
        for client in self.clients:
            if client.process is not None:
                client.process.terminate()
        for client in self.clients:
            if client.process is not None:
                client.finish()

    def _ends(self, isolation: IsolationLevel) -> dict[TopicPartition, int]:
        admin = AdminClient({**self.quick, "bootstrap.servers": self.node.bootstrap})
        parts = [TopicPartition(topic, index) for topic in (INPUT, OUTPUT) for index in range(PARTITIONS)]
        asked = admin.list_offsets({part: OffsetSpec.latest() for part in parts}, isolation_level=isolation, request_timeout=5)
        return {part: future.result(20).offset for part, future in asked.items()}

    def _settled(self) -> dict[TopicPartition, int]:
        """The ends of all partitions, once no transaction is open: those of dead clients must time out."""
        deadline = time.monotonic() + END_LIMIT_S
        while True:
            try:
                ends = self._ends(IsolationLevel.READ_UNCOMMITTED)
                stable = self._ends(IsolationLevel.READ_COMMITTED)
            except KafkaException as failed:
                ends, stable = {}, {TopicPartition(str(failed), 0): -1}
            open_ones = {f"{part.topic}-{part.partition}": at for part, at in stable.items() if ends.get(part) != at}
            if not open_ones:
                return ends
            late = f"transactions hang: {END_LIMIT_S} s after the last client ended, these are not at their ends: {open_ones}"
            assert time.monotonic() < deadline, late
            time.sleep(0.2)

    def _read_all(self) -> None:
        """Everything, as a reader of committed records; then where the groups are."""
        ends = self._settled()
        settings = {**self.quick, "bootstrap.servers": self.node.bootstrap, "enable.auto.commit": False}
        with Recorder(self.histories / "final.jsonl") as recorder:
            name = "final"
            consumer = Consumer(
                {**settings, "group.id": "final", "isolation.level": "read_committed", "enable.partition.eof": True}
            )
            left = {(part.topic, part.partition) for part in ends}
            recorder.note(name, "ok", "position", positions={f"{part.topic}-{part.partition}": 0 for part in ends})
            consumer.assign([TopicPartition(part.topic, part.partition, 0) for part in ends])
            deadline = time.monotonic() + END_LIMIT_S
            while left:
                assert time.monotonic() < deadline, f"{left} could not be read to the end within {END_LIMIT_S} s"
                records = []
                for message in consumer.consume(5000, 0.5):
                    error = message.error()
                    if error is None:
                        records.append([f"{message.topic()}-{message.partition()}", message.offset(), message.value().decode()])
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left.discard((message.topic(), message.partition()))
                recorder.note(name, "ok", "poll", records=records)
            recorder.note(name, "ok", "drain", positions={f"{part.topic}-{part.partition}": end for part, end in ends.items()})
            consumer.close()
            for group in GROUPS:
                asker = Consumer({**settings, "group.id": group, "isolation.level": "read_committed"})
                recorder.note(name, "invoke", "fetch")
                found = asker.committed([TopicPartition(INPUT, index) for index in range(PARTITIONS)], 30)
                offsets = {f"{each.topic}-{each.partition}": max(each.offset, -1) for each in found}
                recorder.note(name, "ok", "fetch", group=group, offsets=offsets)
                asker.close()
