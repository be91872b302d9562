"""Runs a local cluster in the foreground: starts its nodes, shows their output, reports exits, stops all nodes in order.

Other terminals send requests by files: a new node in ``cluster.json`` is started, a ``request`` in a node's folder stops or
restarts it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tidelog.cli.broker_connection import BrokerConnection
from tidelog.cli.cluster import local_layout
from tidelog.cli.cluster.local_controller import active_controller
from tidelog.cli.cluster.local_layout import LocalCluster, LocalNode
from tidelog.cli.cluster.local_nodes import RESTART, STOP, NodeFolder
from tidelog.cli.refusal import CannotConnect, CommandFailed
from tidelog.model.errors import ProtocolViolation
from tidelog.server.signals import ending_signals

if TYPE_CHECKING:
    from tidelog.cli.console_process import ConsoleProcess

TICK_S = 0.1
STOP_LIMIT_S = 30.0
"""How long a node may take to stop before it is killed."""
PID = "pid"
COLORS = ("cyan", "green", "yellow", "magenta", "blue", "bright_red")


class Supervised:
    """A node that this supervisor runs or ran."""

    def __init__(self, directory: str, node: LocalNode) -> None:
        self.node = node
        self.folder = NodeFolder(directory, node)
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = True
        self._shown = self.folder.log.stat().st_size if self.folder.log.exists() else 0
        self._rest = b""

    def start(self) -> None:
        """Starts the node."""
        self.wanted = True
        self.process = self.folder.start()

    def output(self) -> list[str]:
        """Its output lines since the last call."""
        try:
            with self.folder.log.open("rb") as file:
                file.seek(self._shown)
                new = file.read()
        except FileNotFoundError:
            return []
        self._shown += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


class Supervisor:
    """Runs the nodes of a cluster. ``say`` prints a line. ``console``: where a web console listens beside them."""

    def __init__(
        self, directory: str, cluster: LocalCluster, say: Callable[[str], None] = print, console: str | None = None
    ) -> None:
        self._directory = directory
        self.cluster = cluster
        self._say = say
        self._nodes = {node.id: Supervised(directory, node) for node in cluster.nodes}
        self._stopping = False
        self._unread = False
        self._read = self._changed()
        self._ready = threading.Event()
        self._said_ready = False
        self._began = time.monotonic()
        self._listen = console
        self._console: ConsoleProcess | None = None
        self._of_console: deque[str] = deque()

    def run(self) -> int:
        """Runs until a signal, or until every node has exited; returns the exit code."""
        own = claim(self._directory)
        before = {number: signal.signal(number, self._stop) for number in ending_signals()}
        try:
            for each in self._nodes.values():
                each.folder.asked()
                each.start()
            threading.Thread(target=self._watch_for_ready, daemon=True).start()
            while not self._stopping:
                time.sleep(TICK_S)
                self._look()
                if not any(each.process for each in self._nodes.values()) and all(each.wanted for each in self._nodes.values()):
                    self._tell("every node has ended; their last words are in node-*/node.log")
                    return 1
            self._tell("stopping")
            if self._console is not None:
                self._console.end()
            self.stop_all()
            if self._console is not None:
                self._console.wait()
            self._tell("stopped")
            return 0
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            own.close()

    def _stop(self, number: int, frame: Any) -> None:
        self._stopping = True

    def _look(self) -> None:
        self._relay()
        if self._ready.is_set() and not self._said_ready:
            self._said_ready = True
            seconds = time.monotonic() - self._began
            count = len(self.cluster.nodes)
            self._tell(
                f"cluster ready: {count} node{'s' if count != 1 else ''} in {seconds:.1f} s, "
                f"bootstrap servers {self.cluster.bootstrap}"
            )
            if self.cluster.client_file is not None:
                self._tell(f"clients need a login; the administrator's is in {self.cluster.client_file}")
            if self._listen is not None:
                self._start_console(self._listen)
        while self._of_console:
            self._out(self._of_console.popleft())
        for each in self._nodes.values():
            self._look_at(each)
        if self._changed() != self._read:
            self._grow_or_shrink()

    def _start_console(self, listen: str) -> None:
        from tidelog.cli.console_process import ConsoleProcess

        self._console = ConsoleProcess(self.cluster.bootstrap, listen, self._of_console.append)
        self._console.start()

    def _look_at(self, each: Supervised) -> None:
        what = each.folder.asked()
        if each.process is not None and each.process.poll() is not None:
            code = each.process.returncode
            each.process = None
            each.folder.ended()
            if each.wanted:
                how = (
                    f"was ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
                )
                self._tell(f"node {each.node.id} {how}; tidelog cluster restart {each.node.id} starts it again")
            else:
                self._tell(f"node {each.node.id} is stopped")
        if what == STOP:
            each.wanted = False
            each.folder.stop()
        elif what == RESTART:
            if each.process is not None:
                each.wanted = False
                each.folder.stop()
                self._wait(each)
            self._tell(f"starting node {each.node.id}")
            each.start()

    def _grow_or_shrink(self) -> None:
        self._read = self._changed()
        found = local_layout.load(self._directory)
        if found is None:
            return
        self.cluster = found
        for node in found.nodes:
            if node.id not in self._nodes:
                self._tell(f"starting node {node.id}, which is new")
                self._nodes[node.id] = Supervised(self._directory, node)
                self._nodes[node.id].start()
        for gone in [node_id for node_id in self._nodes if node_id not in {node.id for node in found.nodes}]:
            each = self._nodes.pop(gone)
            each.wanted = False
            each.folder.stop()
            self._wait(each)
            self._tell(f"node {gone} is removed")

    def _changed(self) -> float:
        return (Path(self._directory) / local_layout.FILE).stat().st_mtime

    def stop_all(self) -> None:
        """Stops the nodes in sequence: brokers, then controllers, the active one last, because the other nodes need its
        consent."""
        running = [each for each in self._nodes.values() if each.process]
        active = active_controller(self.cluster) if len(running) > 1 else None
        for each in sorted(running, key=lambda each: (each.node.id == active, each.node.controller, -each.node.id)):
            each.folder.stop()
            self._wait(each)

    def _wait(self, each: Supervised) -> None:
        """Waits until the node has exited, and shows its output meanwhile."""
        deadline = time.monotonic() + STOP_LIMIT_S
        while each.process is not None and each.process.poll() is None:
            if time.monotonic() > deadline:
                self._tell(f"node {each.node.id} did not stop within {STOP_LIMIT_S:.0f} s, and is killed")
                each.process.kill()
                each.process.wait()
            time.sleep(TICK_S)
            self._relay()
        each.process = None
        each.folder.ended()
        self._relay()

    def _relay(self) -> None:
        width = len(f"node-{max(self._nodes, default=0)}")
        for each in self._nodes.values():
            for line in each.output():
                name = f"node-{each.node.id}".ljust(width)
                if sys.stdout.isatty():
                    name = click.style(name, fg=COLORS[(each.node.id - 1) % len(COLORS)])
                self._out(f"{name} | {line}")

    def _tell(self, text: str) -> None:
        self._relay()
        self._out(text)

    def _out(self, line: str) -> None:
        """Prints a line. If the output is closed (``| head``, or Ctrl-C ended the reader first), the nodes are stopped: none
        is left running."""
        if self._unread:
            return
        try:
            self._say(line)
        except OSError:
            self._unread = self._stopping = True

    def _watch_for_ready(self) -> None:
        """Sets ready when every node serves and knows all others."""
        count = len(self.cluster.nodes)
        for node in self.cluster.nodes:
            while known_brokers(node.address, self.cluster.cluster_id, self.cluster.client_file) < count:
                if self._stopping:
                    return
                time.sleep(TICK_S)
        self._ready.set()


def claim(directory: str) -> IO[str]:
    """The supervisor holds a lock on this file until it exits, however that happens. CommandFailed when another one holds it."""
    file = (Path(directory) / PID).open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise CommandFailed(f"The cluster in {directory} runs already, in process {who_runs(directory)}.") from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def who_runs(directory: str) -> int | None:
    """The process that runs the cluster; None when there is none."""
    try:
        with (Path(directory) / PID).open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except OSError:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((Path(directory) / PID).read_text())
    return None


def known_brokers(address: str, cluster_id: str, client_file: str | None = None) -> int:
    """The number of brokers that the one at this address knows; 0 when it does not answer, or is in another cluster that uses
    its port."""
    from tidelog.protocol.messages.metadata import MetadataRequest

    try:
        with BrokerConnection(address, client_file) as connection:
            answer = connection.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False))
            return len(answer.brokers) if answer.cluster_id == cluster_id else 0
    except (CannotConnect, ProtocolViolation):
        return 0
