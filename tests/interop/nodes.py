"""Brokers as child processes: tidelog and Apache Kafka behind one interface, on one kind of data directory.

Both get the same ``server.properties``, so that either can be started on what the other left.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.interop.java import JVM_FLAGS, LOG4J, JavaFailed, JavaSide
from tools.jars import ensure

ROOT = Path(__file__).resolve().parent.parent.parent
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# A range for each of pytest's processes. It ends 2,000 below the ephemeral range, where an outgoing connection could take a port
# from under us: controllers and metrics of a cluster lie 1,000 and 2,000 above its brokers.
PORTS = range(29000 + 400 * WORKER, 29400 + 400 * WORKER)
# The levels up to which tidelog is complete; a Kafka node that shares a directory with it is formatted with them.
FEATURES = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
START_LIMIT_S = 60
STOP_LIMIT_S = 40


class NodeFailed(AssertionError):
    """A broker did not start, died, or did not stop; the text has the end of its log."""


_TURN = itertools.count(os.getpid() * 7 + time.monotonic_ns() // 1000)
"""Where to look next: two test runs rarely meet, two threads of one never, and a port that was free is given again last."""


def free_ports(count: int) -> list[int]:
    """Free ports."""
    found: list[int] = []
    for _ in range(len(PORTS)):
        port = PORTS[next(_TURN) % len(PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise NodeFailed(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")


def answers(port: int, timeout: float = 1.0) -> bool:
    """Whether a broker answers ApiVersions v0 there."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(request)) + request)
            head = b""
            while len(head) < 10:
                part = connection.recv(4096)
                if not part:
                    return False
                head += part
    except OSError:
        return False
    correlation, error = struct.unpack(">ih", head[4:10])
    return bool(correlation == 7 and error == 0)


@dataclass
class Node:
    """One broker on one directory, started and stopped as often as one likes. ``kind`` may change between two starts."""

    kind: str
    home: Path
    java: JavaSide | None
    properties: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=lambda: dict(FEATURES))
    jvm_flags: Sequence[str] = JVM_FLAGS
    ports: list[int] = field(default_factory=lambda: free_ports(2))
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def data(self) -> Path:
        """The log directory (``log.dirs``)."""
        return self.home / "data"

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def log_file(self) -> Path:
        return self.home / f"{self.starts:03}-{self.kind}.log"

    def write_properties(self) -> Path:
        """The settings, under Kafka's names, the same for either kind."""
        broker, controller = self.ports
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.properties,
        }
        path = self.home / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def format(self) -> None:
        """Format the directory with Kafka's StorageTool or with ``tidelog format``, according to the kind."""
        args = ["-t", CLUSTER_ID, "-c", str(self.write_properties())]
        for name, level in self.features.items():
            args += ["--feature", f"{name}={level}"]
        if self.kind == "apache":
            assert self.java is not None
            done = self.java.tool("kafka.tools.StorageTool", "format", *args)
            if done["status"]:
                raise NodeFailed(f"StorageTool format ended with {done['status']}:\n{done['out']}{done['err']}")
        else:
            command = [sys.executable, "-m", "tidelog.cli.main", "format", *args]
            made = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
            if made.returncode:
                raise NodeFailed(f"tidelog format ended with {made.returncode}:\n{made.stdout}{made.stderr}")

    def command(self) -> list[str]:
        """What is executed."""
        properties = str(self.write_properties())
        if self.kind == "apache":
            classes = str(ensure() / "*")
            return [
                "java",
                *self.jvm_flags,
                f"-Dlog4j2.configurationFile={LOG4J}",
                "-Dlog.level=info",
                "-cp",
                classes,
                "kafka.Kafka",
                properties,
            ]
        return [sys.executable, "-m", "tidelog.cli.main", "start", properties]

    def launch(self, kind: str | None = None) -> None:
        """Start the process, formatting the directory first when it is new. Does not wait."""
        assert self.process is None, "started twice"
        self.home.mkdir(parents=True, exist_ok=True)
        self.kind = kind or self.kind
        if not (self.data / "meta.properties").exists():
            self.format()
        self.starts += 1
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment(), cwd=self.home
            )

    def start(self, kind: str | None = None) -> Node:
        """Start and wait until it answers. Raises NodeFailed with the end of its log."""
        self.launch(kind)
        assert self.process is not None
        deadline = time.monotonic() + START_LIMIT_S
        while not answers(self.ports[0]):
            status = self.process.poll()
            if status is not None:
                self.process = None
                raise NodeFailed(f"{self.kind} ended with {status} while starting:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise NodeFailed(f"{self.kind} did not answer within {START_LIMIT_S} s:\n{self.log_tail()}")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """SIGTERM, and a clean end."""
        assert self.process is not None, "not started"
        process = self.process
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailed(f"{self.kind} did not stop within {STOP_LIMIT_S} s of SIGTERM:\n{self.log_tail()}") from None
        self.process = None
        expected = 143 if self.kind == "apache" else 0
        if status != expected:
            raise NodeFailed(f"{self.kind} ended with {status} after SIGTERM, not {expected}:\n{self.log_tail()}")

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic (``_`` for ``.`` in names of configs) and wait until it is described: brokers hear of it later."""
        assert self.java is not None
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self.java.ask("create", bootstrap=self.bootstrap, topic=topic, partitions=partitions, configs=named)
        self.describe(topic)

    def describe(self, topic: str) -> dict[str, Any]:
        """What the admin client says about a topic, once it knows it."""
        assert self.java is not None
        deadline = time.monotonic() + 10
        while True:
            try:
                return self.java.ask("describe", bootstrap=self.bootstrap, topic=topic)
            except JavaFailed as failed:
                if "UnknownTopicOrPartition" not in str(failed) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def wait_for_end(self, topic: str, partition: int, end: int) -> None:
        """Wait until the partition's end offset is at least this: for writers that are not told (acks=0)."""
        assert self.java is not None
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            at = self.java.ask("offsets", bootstrap=self.bootstrap, topic=topic, partitions=[partition])["end"][str(partition)]
            if at >= end:
                return
        raise NodeFailed(f"{topic}-{partition} ends at {at}, not at {end}, 10 s after it was written with acks=0")

    def log_tail(self, lines: int = 30) -> str:
        """The end of the log of the latest start."""
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        return "(no log)"

    def complaints(self) -> list[str]:
        """Lines at level ERROR or with a stack trace in the log of the latest start."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        return [
            line
            for line in lines
            if " ERROR " in line or " FATAL " in line or "Traceback" in line or '"level":"error"' in line.lower()
        ]


@contextlib.contextmanager
def running(node: Node) -> Iterator[Node]:
    """The node, started; killed afterwards if the test has left it running."""
    try:
        yield node.start()
    finally:
        node.kill()


def environment() -> dict[str, str]:
    """The environment of a child: ours, with the package found in the source tree when it is not installed, and with compiled
    modules kept, as they are where it is installed: a start without them takes several times as long."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
