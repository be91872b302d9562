"""``tidelog start --processes N`` as a process tree: killed, started again, read and written by clients."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.nodes import environment, free_ports
from tests.node.test_local_cluster import port_is_free

BOUND_S = 90
MOST = 4


def free_port(*bases: int) -> int:
    """The port of first contact of an installation of up to four processes whose ports are free. ``bases``: where else its
    listeners begin, counted from that port, as ``tidelog secure`` writes them. All are below the ephemeral range."""
    offsets = [base + step for base in (0, *bases) for step in (0, 1, *(10 * (each + 1) for each in range(MOST)))]
    while True:
        first = free_ports(1)[0] - max(bases, default=0)
        if all(port_is_free(first + offset) for offset in offsets):
            return first


class Installation:
    """The command and its processes; ``start`` may be called again after an end."""

    def __init__(self, directory: Path, count: int, *overrides: str) -> None:
        self.directory = directory
        self.count = count
        self.port = free_port()
        self.bootstrap = f"localhost:{self.port}"
        self.output = directory / "output"
        self.overrides = ("tidelog.http.listener=", "offsets.topic.num.partitions=4", *overrides)
        self.process: subprocess.Popen[bytes] | None = None
        self._begin = 0

    def words(self, count: int | None) -> list[str]:
        """The command line."""
        words = [sys.executable, "-m", "tidelog.cli.main", "start", "--data", "data", "--port", str(self.port)]
        words += [] if count is None else ["--processes", str(count)]
        return [*words, *(word for each in self.overrides for word in ("-o", each))]

    def launch(self, count: int | None = None) -> None:
        """Start the command, and wait for nothing. It is its processes' only ancestor: they do not live longer than a test."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._begin = len(self.said())
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.words(count or self.count), stdout=output, stderr=output, env=environment(), cwd=self.directory
            )

    def start(self, count: int | None = None) -> None:
        """Until clients are served."""
        self.launch(count)
        self.until(lambda: "\ntidelog is ready: " in self.said_now())

    def refused(self, count: int | None) -> str:
        """What a start that fails says."""
        done = subprocess.run(
            self.words(count), capture_output=True, text=True, env=environment(), cwd=self.directory, check=False, timeout=BOUND_S
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stderr

    def said(self) -> str:
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def said_now(self) -> str:
        """Since the latest start."""
        return self.said()[self._begin :]

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOUND_S
        while not condition():
            assert time.monotonic() < deadline, self.said()
            assert self.process is None or self.process.poll() is None, self.said()
            time.sleep(0.05)

    def pid(self, node_id: int) -> int | None:
        """The process of a node; None while it has none."""
        return self.pids().get(node_id)

    def pids(self) -> dict[int, int]:
        """The processes by node id, also those whose supervisor has been killed."""
        found: dict[int, int] = {}
        for each in Path("/proc").iterdir():
            if not each.name.isdecimal():
                continue
            try:
                words = (each / "cmdline").read_bytes().decode(errors="replace").split("\0")
                there = os.readlink(each / "cwd") == str(self.directory.resolve())
            except OSError:
                continue
            ids = [word.partition("=")[2] for word in words if re.fullmatch(r"node\.id=\d+", word)]
            if ids and there:
                found[int(ids[0])] = int(each.name)
        return found

    def kill(self, node_id: int) -> None:
        """End a node's process with SIGKILL, and wait until another one serves."""
        pid = self.pid(node_id)
        assert pid is not None, self.said()
        served = self.said().count(f"node {node_id} serves again")
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: self.said().count(f"node {node_id} serves again") > served)

    def kill_supervisor(self) -> None:
        """With SIGKILL; its processes go on for the moment."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(BOUND_S)
        self.process = None

    def stop(self) -> int:
        """In order; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(BOUND_S)
        self.process = None
        return code

    def create(self, topic: str, partitions: int, factor: int) -> None:
        """Make a topic."""
        settings = {"min.insync.replicas": "1"}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(topic, partitions, factor, config=settings)])[topic].result(BOUND_S)

    def clean(self, node_id: int) -> bool:
        """Whether a node has stopped in order."""
        folder = self.directory / "data" if node_id == 1 else self.directory / "data" / "processes" / str(node_id)
        return (folder / ".kafka_cleanshutdown").exists()


@contextmanager
def installed(directory: Path, count: int, *overrides: str) -> Iterator[Installation]:
    """A started installation, stopped at the end."""
    made = Installation(directory, count, *overrides)
    try:
        made.start()
        yield made
        if made.process is not None:
            assert made.stop() == 0, made.said()
    finally:
        if made.process is not None:
            made.process.kill()
            made.process.wait()
        for pid in made.pids().values():
            os.kill(pid, signal.SIGKILL)


class Writer:
    """Librdkafka that writes numbers, and knows which of them are acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 80_000,
            }
        )
        self._topic = topic
        self.sent = 0
        self.acknowledged: set[int] = set()
        self.failed: list[str] = []

    def write(self, count: int) -> None:
        """Hand over the next numbers."""
        for number in range(self.sent, self.sent + count):
            self._producer.produce(self._topic, str(number), on_delivery=partial(self._told, number))
            self._producer.poll(0)
        self.sent += count

    def _told(self, number: int, error: object, _: object) -> None:
        if error is None:
            self.acknowledged.add(number)
        else:
            self.failed.append(str(error))

    def under_way(self) -> int:
        """How many are not acknowledged yet."""
        self._producer.poll(0.01)
        return self.sent - len(self.acknowledged)

    def flush(self) -> None:
        """All are acknowledged."""
        assert self._producer.flush(BOUND_S) == 0
        assert not self.failed, self.failed[:3]
        assert len(self.acknowledged) == self.sent


def missing(bootstrap: str, topic: str, wanted: set[int]) -> set[int]:
    """Those of ``wanted`` that cannot be read."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": os.urandom(4).hex(), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    left, deadline = set(wanted), time.monotonic() + BOUND_S
    while left and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.5):
            if message.error() is None:
                left.discard(int(message.value()))
    consumer.close()
    return left
