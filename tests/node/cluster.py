"""Clusters of real processes: some nodes on this machine, formatted as one cluster, killed and started again at will.

    with Cluster(tmp_path, 3) as cluster:
        cluster.kill(1)
        cluster.start(1)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, ...})

Nodes 1 to ``count`` are brokers and controllers of one dynamic quorum; with ``roles="broker"`` they are brokers only, and
controllers 101, 102, ... stand beside them. Ports stay a node's own through all of its starts. What a failing test leaves is
shown: the end of every node's log is added to the exception.
"""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.interop.nodes import environment, free_ports
from tidelog.client.connection import ClientConnection
from tidelog.model.ids import Uuid
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server.disk import DiskFileSystem

T = TypeVar("T")

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
BOUND_S = 60.0
FIRST_CONTROLLER = 101
LOG_LINES = 25
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "tidelog.http.listener": "",
}
"""Kafka's names, with times that suit a test; ``properties`` wins."""


class ClusterFailed(AssertionError):
    """A node did not start, died, or did not stop."""


class Cluster:
    """See the module. ``racks``: one for each broker. ``features``: levels other than the defaults."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *,
        roles: str = "broker,controller",
        controllers: int = 3,
        racks: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.directory = directory
        self.racks = racks
        self.properties = dict(properties or {})
        self.combined = "controller" in roles
        self.client_settings: Mapping[str, str] = {}
        """What librdkafka needs beside the addresses."""
        self.brokers = list(range(1, count + 1))
        self.controllers = (
            self.brokers if self.combined else [*range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)] if controllers else []
        )
        self.ids = sorted({*self.brokers, *self.controllers})
        ports = iter(free_ports(len(self.brokers) + len(self.controllers)))
        self.ports = {node_id: next(ports) for node_id in self.brokers}
        """Where clients come in."""
        self.controller_ports = {node_id: next(ports) for node_id in self.controllers}
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.paused: set[int] = set()
        self._started: dict[int, int] = {}
        self._format(dict(features) if features is not None else None)

    # Files

    def path(self, node_id: int) -> Path:
        """The log dir of a node (``log.dirs``)."""
        return self.directory / f"data-{node_id}"

    def log_file(self, node_id: int) -> Path:
        return self.directory / f"{node_id}.log"

    def log(self, node_id: int) -> str:
        """All that a node has said, in all of its lives."""
        with contextlib.suppress(FileNotFoundError):
            return self.log_file(node_id).read_text(errors="replace")
        return ""

    def _directory_id(self, node_id: int) -> Uuid:
        return Uuid(node_id.to_bytes(2, "big") * 8)

    def _voters(self) -> VoterSet:
        return VoterSet.of(
            Voter(each, self._directory_id(each), (Endpoint("CONTROLLER", "127.0.0.1", self.controller_ports[each]),))
            for each in self.controllers
        )

    def _format(self, features: dict[str, int] | None) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        levels = {} if features is None else {"levels": features}
        for node_id in self.ids:
            first = self._voters() if node_id in self.controllers else None
            request = FormatRequest([str(self.path(node_id))], node_id, CLUSTER_ID, initial_voters=first, **levels)
            format_dirs(DiskFileSystem(), request, rng=random.Random(node_id), now_ms=time.time_ns() // 1_000_000)

    def settings(self, node_id: int) -> dict[str, str]:
        """The node's server.properties."""
        listeners = []
        if node_id in self.brokers:
            listeners.append(f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}")
        if node_id in self.controllers:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}")
        roles = [role for role, ids in (("broker", self.brokers), ("controller", self.controllers)) if node_id in ids]
        settings = {
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.controller_ports.values()),
            "log.dirs": str(self.path(node_id)),
            **SETTINGS,
            **self.properties,
        }
        if node_id in self.brokers and self.racks:
            settings["broker.rack"] = self.racks[self.brokers.index(node_id) % len(self.racks)]
        return settings

    # Processes

    def launch(self, *node_ids: int, **properties: str) -> None:
        """Begin the processes (of all that do not run), and wait for nothing. ``properties``: more settings, ``_`` for ``.``."""
        for node_id in node_ids or [each for each in self.ids if each not in self.running]:
            assert node_id not in self.running, f"node {node_id} runs"
            settings = {**self.settings(node_id), **{name.replace("_", "."): value for name, value in properties.items()}}
            file = self.directory / f"{node_id}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            self._started[node_id] = len(self.log(node_id))
            with self.log_file(node_id).open("ab") as log:
                self.running[node_id] = subprocess.Popen(
                    self.command(node_id, file),
                    cwd=self.directory,
                    env=self.environment(node_id),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def command(self, node_id: int, properties: Path) -> list[str]:
        """What is executed."""
        return [sys.executable, "-m", "tidelog.cli.main", "start", str(properties)]

    def environment(self, node_id: int) -> dict[str, str]:
        """Of the process."""
        return environment()

    def start(self, *node_ids: int, **properties: str) -> None:
        """Start them, and wait until each serves."""
        chosen = node_ids or tuple(each for each in self.ids if each not in self.running)
        self.launch(*chosen, **properties)
        self.ready(*chosen)

    def ready(self, *node_ids: int) -> None:
        """Wait until each has said so since its latest start."""
        for node_id in node_ids:
            self.until(lambda node_id=node_id: self._is_ready(node_id), f"node {node_id} is ready")  # type: ignore[misc]

    def _is_ready(self, node_id: int) -> bool:
        status = self.running[node_id].poll()
        if status is not None:
            del self.running[node_id]
            raise ClusterFailed(f"node {node_id} ended with {status} while it started:\n{self._tail(node_id)}")
        return self.is_ready(node_id, self.log(node_id)[self._started[node_id] :])

    def is_ready(self, node_id: int, said: str) -> bool:
        """By what it has said since its latest start."""
        return "tidelog is ready" in said

    def kill(self, *node_ids: int) -> None:
        """kill -9."""
        for node_id in node_ids:
            process = self.running.pop(node_id)
            self.paused.discard(node_id)
            process.kill()
            process.wait()

    def stop(self, *node_ids: int) -> None:
        """SIGTERM to all of them, and a clean end of each."""
        for node_id in node_ids:
            self.running[node_id].send_signal(signal.SIGTERM)
        for node_id in node_ids:
            process = self.running.pop(node_id)
            try:
                status = process.wait(BOUND_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise ClusterFailed(f"node {node_id} did not stop within {BOUND_S:.0f} s:\n{self._tail(node_id)}") from None
            if status != self.clean_status(node_id):
                raise ClusterFailed(f"node {node_id} ended with {status} after SIGTERM:\n{self._tail(node_id)}")

    def clean_status(self, node_id: int) -> int:
        """Exit statuses of a node that was stopped."""
        return 0

    def pause(self, *node_ids: int) -> None:
        """SIGSTOP: as a machine that hangs."""
        for node_id in node_ids:
            self.running[node_id].send_signal(signal.SIGSTOP)
            self.paused.add(node_id)

    def resume(self, *node_ids: int) -> None:
        """SIGCONT."""
        for node_id in node_ids:
            self.running[node_id].send_signal(signal.SIGCONT)
            self.paused.discard(node_id)

    # What is asked of it

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers``: all brokers that run, or all when none does."""
        chosen = [each for each in self.brokers if each in self.running] or self.brokers
        return ",".join(map(self.address, chosen))

    @property
    def bootstrap_controllers(self) -> str:
        """``bootstrap.controllers``."""
        return ",".join(f"127.0.0.1:{port}" for port in self.controller_ports.values())

    def address(self, node_id: int) -> str:
        """host:port of a broker."""
        return f"127.0.0.1:{self.ports[node_id]}"

    def ask(self, node_id: int, *requests: Any, controller: bool = False) -> Any:
        """The answer to the last of the requests, on a broker's listener or on its controller's. OSError when it is gone."""
        port = self.controller_ports[node_id] if controller else self.ports[node_id]
        with self.connection(port) as connection:
            client = ClientConnection("cluster-test")

            def exchange(frame: bytes) -> Any:
                connection.sendall(frame)
                while not (found := client.receive(connection.recv(1 << 16) or self._gone(node_id))):
                    pass
                return found[0]

            frame: bytes | None = client.hello()
            while frame is not None:
                frame = client.welcomed(exchange(frame))
            self.log_in(client, exchange)
            answer = None
            for request in requests:
                answer = exchange(client.request(request))
            return answer

    @contextlib.contextmanager
    def connection(self, port: int) -> Iterator[socket.socket]:
        """To a listener."""
        with socket.create_connection(("127.0.0.1", port), BOUND_S) as connection:
            yield connection

    def log_in(self, client: ClientConnection, exchange: Callable[[bytes], Any]) -> None:
        """Where listeners ask for it; ``exchange`` sends a frame and returns its answer."""

    @staticmethod
    def _gone(node_id: int) -> bytes:
        raise ConnectionResetError(f"node {node_id} closed the connection")

    def active_controller(self) -> int:
        """The one that says last that it is, of those that run and answer as the leader."""

        def found() -> int | None:
            said = {}
            for node_id in self.controllers:
                lines = [line for line in self.log(node_id).splitlines() if "is the active controller of epoch" in line]
                if lines and node_id in self.running and node_id not in self.paused:
                    said[node_id] = int(lines[-1].rsplit(" ", 1)[1])
            return max(said, key=lambda each: said[each]) if said else None

        return self.until(found, "an active controller")

    def until(self, what: Callable[[], T | None], name: str = "", bound_s: float = BOUND_S) -> T:
        """Waits for it to be true, or there. ClusterFailed after ``bound_s``."""
        deadline = time.monotonic() + bound_s
        while not (found := what()):
            if time.monotonic() > deadline:
                raise ClusterFailed(f"not within {bound_s:.0f} s: {name or what}\n{self.tails()}")
            time.sleep(0.02)
        return found

    def tails(self, node_ids: Iterable[int] = ()) -> str:
        """The end of each node's log."""
        return "\n".join(f"--- node {each}\n{self._tail(each)}" for each in (list(node_ids) or self.ids))

    def _tail(self, node_id: int) -> str:
        return "\n".join(self.log(node_id).splitlines()[-LOG_LINES:])

    def complaints(self) -> list[str]:
        """What nodes said at level ERROR, and tracebacks."""
        lines = (f"{each}: {line}" for each in self.ids for line in self.log(each).splitlines())
        return [line for line in lines if " ERROR " in line or " CRITICAL " in line or "Traceback" in line]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        if error is not None and not isinstance(error, ClusterFailed):
            error.add_note(self.tails())

    def close(self) -> None:
        """Nothing runs any more."""
        self.kill(*list(self.running))
