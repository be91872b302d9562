"""What is measured, started: a node of a revision, three of them, or the C limit; all behind one shape.

A further side (a warm Apache Kafka) is a function more that returns a ``Server``, and a ``Side`` in ``sides``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.pair import frames
from bench.pair.checkouts import Checkout
from bench.pair.processes import Failed, end, free_ports, kill, launch, run
from bench.pair.programs import program

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
START_S = 240.0
LOOPBACK = "127.0.0.1"
QUIET = {"tidelog.http.listener": ""}
"""No port for metrics: two nodes would want the same one."""
PATIENT = {
    "broker.session.timeout.ms": "300000",
    "controller.quorum.fetch.timeout.ms": "300000",
    "replica.lag.time.max.ms": "300000",
    "replica.fetch.wait.max.ms": "20000",
    "metadata.max.idle.interval.ms": "0",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
}
"""Three nodes on few cores, perhaps under valgrind: being slow must not change who leads, and what an idle cluster does (empty
fetches, a record in the metadata log twice a second) must not be a part of a record's cost that grows as the machine slows."""
_ALREADY_THERE = 36


@dataclass
class Server:
    """One or more processes that serve; requests go to the first's ``port``."""

    home: Path
    ports: list[int]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    knows_topics: bool = True

    @property
    def port(self) -> int:
        """Where requests go."""
        return self.ports[0]

    @property
    def pids(self) -> list[int]:
        """All its processes."""
        return [process.pid for process in self.processes]

    def check(self) -> None:
        """Raises Failed when a process has ended."""
        for process in self.processes:
            if process.poll() is not None:
                raise Failed(f"a node ended with {process.returncode}:\n{self.said()}")

    def said(self) -> str:
        """The end of the logs."""
        texts = [path.read_text(errors="replace") for path in sorted(self.home.glob("*.log"))]
        return "\n".join("\n".join(text.splitlines()[-20:]) for text in texts)

    def ask(self, request: bytes) -> bytes:
        """One answer, its length left off. OSError when nothing comes."""
        with socket.create_connection((LOOPBACK, self.port), 5) as connection:
            connection.settimeout(60)
            connection.sendall(request)
            answer = b""
            while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
                part = connection.recv(1 << 16)
                if not part:
                    raise OSError("closed")
                answer += part
        return answer[4:]

    def create(self, topic: str, partitions: int) -> bytes:
        """Make a topic, led by the first node, with a replica on each; its id. Waits until the nodes serve. Raises Failed."""
        if not self.knows_topics:
            return bytes(16)
        ids = list(range(1, len(self.processes) + 1))
        request, problem = frames.create_topic(topic, [ids] * partitions), ""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            self.check()
            with contextlib.suppress(OSError):
                error, topic_id = frames.created(self.ask(request), topic)
                if error == 0:
                    return topic_id
                problem = f"error {error}"
                if error == _ALREADY_THERE:
                    raise Failed(f"topic {topic} is there already")
            time.sleep(0.05)
        raise Failed(f"topic {topic} was not made ({problem}):\n{self.said()}")

    def await_leaders(self, topic_id: bytes, partitions: int) -> None:
        """A topic is there before the first node leads all of its partitions. Raises Failed."""
        deadline = time.monotonic() + START_S
        for index in range(partitions if self.knows_topics else 0):
            asked = frames.fetch(topic_id, index, 0, 1, 0, max_wait_ms=0)
            while self.ask(asked.request)[asked.error_at : asked.error_at + 2] != b"\0\0":
                if time.monotonic() > deadline:
                    raise Failed(f"partition {index} has no leader after {START_S:.0f} s:\n{self.said()}")
                time.sleep(0.02)

    def delete(self, topic: str, files: Path) -> None:
        """Delete a topic, and wait until nothing of it is left below ``files``: unlinking is CPU of the node that a later sample
        would show. Raises Failed."""
        if error := frames.deleted(self.ask(frames.delete_topic(topic)), topic):
            raise Failed(f"topic {topic} was not deleted: error {error}")
        deadline = time.monotonic() + START_S
        while any(files.glob(f"{topic}-*")) or any(files.glob(f"{topic[:200]}*-delete")):
            if time.monotonic() > deadline:
                raise Failed(f"files of {topic} are still there after {START_S:.0f} s")
            time.sleep(0.1)

    def await_answer(self) -> None:
        """Until the first node answers ApiVersions. Raises Failed."""
        deadline = time.monotonic() + START_S
        while True:
            self.check()
            try:
                self.ask(frames.api_versions().request)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise Failed(f"no answer within {START_S:.0f} s:\n{self.said()}") from None
            time.sleep(0.002)

    def stop(self) -> None:
        """Kill it; its data goes."""
        for process in self.processes:
            kill(process)
        shutil.rmtree(self.home, ignore_errors=True)

    def stop_cleanly(self) -> None:
        """SIGTERM; its data stays."""
        for process in self.processes:
            end(process)


def surroundings(hash_seed: int) -> dict[str, str]:
    """The environment of a side's processes: no path of ours, the same hashes on both sides of a round."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "TIDELOG_"))}
    return {**kept, "PYTHONHASHSEED": str(hash_seed)}


def node(
    checkout: Checkout, home: Path, hash_seed: int, prefix: Sequence[str] = (), *, probe: tuple[Path, Path] | None = None
) -> Server:
    """One node, launched; ``prefix``: what runs it, as valgrind does; ``probe``: a script that does, and its file of results."""
    home.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    overrides = [f"--override={key}={value}" for key, value in {**QUIET, "node.id": "1"}.items()]
    words = ["start", "--port", str(port), "--data", str(home / "data"), *overrides]
    command = checkout.command(*words)
    if probe is not None:
        command = [str(checkout.python), *map(str, probe), *checkout.entry_point(), *words]
    server = Server(home, [port])
    server.processes.append(launch([*prefix, *command], home / "node.log", surroundings(hash_seed), home))
    return server


def cluster(checkout: Checkout, home: Path, hash_seed: int, prefixes: Sequence[Sequence[str]] = ((), (), ())) -> Server:
    """Three nodes, each broker and controller, formatted and launched."""
    home.mkdir(parents=True, exist_ok=True)
    ports = free_ports(6)
    server = Server(home, ports[:3])
    voters = ",".join(f"{number + 1}@{LOOPBACK}:{ports[3 + number]}" for number in range(3))
    for number, prefix in enumerate(prefixes):
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(number + 1),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{LOOPBACK}:{ports[number]},CONTROLLER://{LOOPBACK}:{ports[3 + number]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(home / f"data-{number + 1}"),
            **QUIET,
            **PATIENT,
        }
        path = home / f"{number + 1}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        run(checkout.command("format", "-t", CLUSTER_ID, "-c", str(path)), surroundings(hash_seed), home, START_S)
        command = [*prefix, *checkout.command("start", str(path))]
        server.processes.append(launch(command, home / f"{number + 1}.log", surroundings(hash_seed), home))
    return server


def limit(home: Path) -> Server:
    """The C limit."""
    home.mkdir(parents=True)
    (port,) = free_ports(1)
    server = Server(home, [port], knows_topics=False)
    command = [str(program("limit")), str(port), str(home)]
    server.processes.append(launch(command, home / "limit.log", dict(os.environ), home))
    return server
