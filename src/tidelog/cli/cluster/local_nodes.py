"""The processes of a local cluster: format, start, find by pid file, stop.

Each node is a process in its own session, so that Ctrl-C reaches the supervisor and not the nodes; its output goes to
``node.log`` in its folder. A pid file counts only while the process really runs that folder.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from tidelog.cli.cluster.local_layout import HOST, LocalCluster, LocalNode, properties
from tidelog.cli.refusal import CommandFailed
from tidelog.model.errors import ConfigError
from tidelog.model.ids import Uuid, uuid_from_text, uuid_to_text
from tidelog.raft.format import FormatRequest, feature_levels, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter

SETTINGS, PID, LOG, DATA, REQUEST = "server.properties", "pid", "node.log", "data", "request"
RESTART, STOP = "restart", "stop"
"""(RESTART, STOP): requests from other terminals to the supervisor."""


class NodeFolder:
    """The files of a node."""

    def __init__(self, directory: str, node: LocalNode) -> None:
        self.node = node
        self.path = Path(directory).resolve() / f"node-{node.id}"

    @property
    def settings(self) -> Path:
        """Its server.properties."""
        return self.path / SETTINGS

    @property
    def log(self) -> Path:
        """All its output."""
        return self.path / LOG

    def prepare(self, cluster: LocalCluster) -> None:
        """Creates settings and formatted log dir where they are missing. CommandFailed when it cannot be formatted."""
        from tidelog.server.disk import DiskFileSystem
        from tidelog.server.runtime import system_now_ms

        data = self.path / DATA
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.settings.exists():
            lines = (f"{name}={value}\n" for name, value in properties(cluster, self.node, str(data)).items())
            self.settings.write_text("".join(lines), encoding="utf-8")
        if (data / "meta.properties").exists():
            return
        request = FormatRequest(
            [str(data)],
            self.node.id,
            cluster.cluster_id,
            levels=feature_levels(()),
            initial_voters=founders(cluster) if self.node.founder else None,
        )
        try:
            format_dirs(DiskFileSystem(), request, rng=random.SystemRandom(), now_ms=system_now_ms())
        except (ConfigError, OSError) as error:
            raise CommandFailed(f"Node {self.node.id} cannot be formatted: {error}") from error

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the node and writes its pid file."""
        command = [sys.executable, "-m", "tidelog.cli.main", "start", str(self.settings)]
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.path, start_new_session=True
            )
        (self.path / PID).write_text(f"{process.pid}\n")
        return process

    def pid(self) -> int | None:
        """The process id of this node; None when it does not run."""
        try:
            pid = int((self.path / PID).read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if str(self.settings) in command_line(pid) else None

    def suspended(self) -> bool:
        """Whether its process is stopped by SIGSTOP or Ctrl-Z."""
        pid = self.pid()
        return pid is not None and process_state(pid) == "T"

    def http_address(self) -> str | None:
        """The address of /metrics and /healthz from its file; None when they are turned off."""
        from tidelog.config.properties import parse

        try:
            return parse(self.settings.read_text(encoding="utf-8")).get("tidelog.http.listener") or None
        except (FileNotFoundError, ConfigError):
            return None

    def signal(self, number: int) -> bool:
        """Sends a signal; False when it does not run."""
        pid = self.pid()
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        return True

    def stop(self) -> bool:
        """Asks it to stop; False when it does not run."""
        return self.signal(signal.SIGTERM)

    def ended(self) -> None:
        """Called when the process has exited."""
        (self.path / PID).unlink(missing_ok=True)

    def ask(self, what: str) -> None:
        """Leaves a request for the supervisor."""
        (self.path / REQUEST).write_text(what)

    def asked(self) -> str | None:
        """Takes the request, if there is one."""
        path = self.path / REQUEST
        try:
            what = path.read_text().strip()
        except FileNotFoundError:
            return None
        path.unlink(missing_ok=True)
        return what


def founders(cluster: LocalCluster) -> VoterSet:
    """The initial voters of the cluster."""
    return VoterSet.of(
        Voter(node.id, Uuid(uuid_from_text(node.directory_id)), (Endpoint("CONTROLLER", HOST, node.controller_port),))
        for node in cluster.nodes
        if node.founder
    )


def new_id() -> str:
    """A random id for a cluster or a directory."""
    from tidelog.model.ids import random_uuid

    return uuid_to_text(random_uuid(random.SystemRandom()))


def process_state(pid: int) -> str:
    """``R``, ``S``, ``T`` and so on, as ps shows it; empty when the process does not exist."""
    shown = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1]


def command_line(pid: int) -> str:
    """The command line of a process; empty when it does not exist or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()
