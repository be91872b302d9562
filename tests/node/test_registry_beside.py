"""``--registry`` of ``tidelog start``: the registry serves beside the node, keeps its schemas in it, and ends with it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BOUND_S = 120
START = (sys.executable, "-m", "tidelog.cli.main", "start", "--port", "0", "--data", "data", "-o", "tidelog.http.listener=")


class Running:
    """A node with ``--registry``, once both are ready."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [*START, "--registry=127.0.0.1:0"], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.lines: list[str] = []
        self.url = ""
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            found = re.match(r"Schemas of cluster .*: (http://\S+)", line)
            if found:
                self.url = found[1]
                break
        assert self.url, self.process.communicate()

    def ask(self, path: str, body: object = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def ended(self) -> str:
        """Waits until the node and its registry, which have the same output, have ended; what stderr had."""
        return self.process.communicate(timeout=BOUND_S)[1]

    def refuses(self) -> bool:
        host, port = self.url.removeprefix("http://").split(":")
        with socket.socket() as tried:
            return tried.connect_ex((host, int(port))) != 0


@contextmanager
def running(directory: Path) -> Iterator[Running]:
    found = Running(directory)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
        assert found.process.stdout is not None
        if not found.process.stdout.closed:
            found.ended()


def test_schemas_outlive_a_node_that_is_killed_with_its_registry(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        assert node.lines[0].startswith("tidelog is ready: PLAINTEXT://localhost:")
        answer = node.ask("/subjects/s/versions", {"schema": '"int"'})
        assert isinstance(answer, dict)
        assert answer["id"] == 1
        node.process.kill()
        node.ended()
        assert node.refuses()
    with running(tmp_path) as node:
        assert node.ask("/subjects") == ["s"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_registry_ends_with_a_node_that_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as node:
        node.process.send_signal(number)
        said = node.ended()
        assert node.process.returncode == 0
        assert node.refuses()
        assert "the registry" not in said
