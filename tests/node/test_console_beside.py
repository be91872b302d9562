"""``--console`` of ``tidelog start`` and ``tidelog cluster``: the console serves beside the node, and ends with it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.interop.nodes import free_ports
from tests.node.installation import free_port
from tidelog.cli.broker_connection import BrokerConnection
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

READY = "tidelog console is ready at http://127.0.0.1:"
BOUND_S = 120
TIDELOG = [sys.executable, "-m", "tidelog.cli.main"]


class Running:
    """A command with ``--console``, once both are ready. ``lines``: its output before that."""

    def __init__(self, directory: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [*TIDELOG, *words, "--console=127.0.0.1:0"],
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith(READY):
                break
        assert self.lines[-1].startswith(READY), self.process.communicate()
        self.port = int(self.lines[-1].removeprefix(READY).strip("/"))

    def get(self, path: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path)
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        return found

    def brokers(self) -> list[Any]:
        status, body = self.get("/api/v1/clusters/main/brokers")
        assert status == 200, body
        return [row["id"] for row in json.loads(body)["data"]]

    def console_pid(self) -> int:
        shown = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        rows = [line.split(maxsplit=2) for line in shown]
        (found,) = [int(pid) for pid, parent, words in rows if int(parent) == self.process.pid and " console " in words]
        return found

    def ended(self) -> str:
        """Waits until the command and its console, which have the same output, have ended; what stderr had."""
        return self.process.communicate(timeout=BOUND_S)[1]

    def refuses(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) != 0


@contextmanager
def running(directory: Path, *words: str) -> Iterator[Running]:
    found = Running(directory, *words)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
        if not found.process.stdout.closed:
            found.ended()


START = ("start", "--port", "0", "-o", "tidelog.http.listener=")


def test_the_console_shows_the_node_and_ends_with_a_node_that_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, *START) as node:
        assert node.lines[0].startswith("tidelog is ready: PLAINTEXT://localhost:")
        status, page = node.get("/")
        assert (status, b"<html" in page.lower()) == (200, True)
        assert node.brokers() == [1]
        tail = HTTPConnection("127.0.0.1", node.port, timeout=30)  # a browser whose page is open
        tail.request("GET", "/api/v1/clusters/main/health")
        node.process.kill()
        node.ended()
        assert node.refuses()
        tail.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_console_ends_with_a_node_that_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, *START) as node:
        node.process.send_signal(number)
        said = node.ended()
        assert node.process.returncode == 0
        assert node.refuses()
        assert "the console" not in said


def test_several_processes_have_one_console_that_ends_with_them(tmp_path: Path) -> None:
    port = free_port()
    words = ("start", "--port", str(port), "--processes", "2", "-o", "tidelog.http.listener=")
    with running(tmp_path, *words) as nodes:
        assert "2 processes" in nodes.lines[0]
        assert len(nodes.brokers()) == 2
        nodes.process.send_signal(signal.SIGTERM)
        said = nodes.ended()
        assert nodes.process.returncode == 0
        assert nodes.refuses()
        assert "the console" not in said
    with running(tmp_path, *words) as nodes:
        nodes.process.kill()
        nodes.ended()
        assert nodes.refuses()


def test_a_console_that_is_killed_is_reported_and_the_node_serves_on(tmp_path: Path) -> None:
    with running(tmp_path, *START) as node:
        address = node.lines[0].split("//")[1].split(" ")[0]
        subprocess.run(["kill", "-9", str(node.console_pid())], check=True)
        assert node.process.stderr is not None
        report = next(line for line in node.process.stderr if "the console was ended by signal 9 (SIGKILL)" in line)
        assert f"tidelog console --bootstrap-server {address} --listen 127.0.0.1:0" in report
        with BrokerConnection(address) as broker:
            assert [each.broker_id for each in broker.ask(DescribeClusterRequest()).brokers] == [1]
        node.process.send_signal(signal.SIGTERM)
        node.ended()
        assert node.process.returncode == 0


def test_a_cluster_has_a_console_that_ends_with_it(tmp_path: Path) -> None:
    while (port := free_ports(1)[0]) > 60_000:  # the ports of controller and metrics are above
        pass
    with running(tmp_path, "cluster", "1", "--port", str(port)) as cluster:
        assert any(line.startswith("cluster ready: 1 node") for line in cluster.lines)
        assert cluster.get("/")[0] == 200
        assert cluster.brokers() == [1]
        cluster.process.send_signal(signal.SIGINT)
        cluster.ended()
        assert cluster.process.returncode == 0
        assert cluster.refuses()
