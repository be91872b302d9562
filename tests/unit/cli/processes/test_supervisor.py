"""The supervisor with stand-ins for nodes: small programs that say what a node says."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidelog.cli.processes.plan import Plan, Started

STAND_IN = """
import json, os, signal, socket, sys
place = json.loads(os.environ["TIDELOG_PROCESS"])
control = socket.socket(fileno=place["control"])
name = f"node {place['node_id']}"
def say(what): os.write(1, f"{name} {what}\\n".encode())
def end(*_):
    say("ends")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
say("begins" + (" first" if place["first"] else ""))
if "fails" in sys.argv or any(os.path.exists(each) for each in sys.argv[1:] if each.endswith("fails")):
    os._exit(1)
control.send(b"ready\\n")
answers = [b"spare 1 1\\n", b"spare 1 0\\n"] if "awaited" in sys.argv else []
while data := control.recv(100):
    for line in data.decode().split():
        if line == "spare":
            control.send(answers.pop(0) if answers else b"spare 0 0\\n")
        else:
            say("hears " + line)
say("is alone")
"""
STEP_S = 30


class Supervised:
    """A supervisor and what it and its processes print."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._rest = b""

    def until(self, text: str, times: int = 1) -> None:
        """Read lines until one holds ``text``, or so many do."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while sum(text in line for line in self.lines) < times:
                assert selector.select(STEP_S), self.lines
                data = os.read(self.process.stdout.fileno(), 65536)
                assert data, (text, self.lines)
                *whole, self._rest = (self._rest + data).split(b"\n")
                self.lines += [line.decode() for line in whole]

    def order(self, *texts: str) -> list[str]:
        """The lines that hold one of these."""
        return [line for line in self.lines if any(text in line for text in texts)]


@contextmanager
def supervised(directory: Path, *arguments: str, json_log: bool = False) -> Iterator[Supervised]:
    """One process for each of ``arguments``, which is that of its stand-in."""
    with (directory / "lock").open("w") as lock, (directory / "plan").open("w+") as file:
        commands = [Started(index + 1, (sys.executable, "-c", STAND_IN, each)) for index, each in enumerate(arguments)]
        plan = Plan(
            tuple(commands),
            ("PLAINTEXT://h:1",),
            {},
            None,
            "",
            lock.fileno(),
            lock.fileno(),
            str(directory),
            "info",
            "json" if json_log else "text",
            0.0,
        )
        file.write(plan.to_json())
        file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "tidelog.cli.processes.supervisor", str(file.fileno())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(file.fileno(), lock.fileno()),
        )
        try:
            yield Supervised(process)
        finally:
            process.kill()
            process.communicate()


def test_clients_come_in_when_all_serve_and_the_first_process_ends_last(tmp_path: Path) -> None:
    with supervised(tmp_path, "", "", "") as running:
        running.until("tidelog is ready: PLAINTEXT://h:1 (3 processes, nodes 1 to 3, ")
        for node in (1, 2, 3):
            running.until(f"node {node} hears open")
        running.process.send_signal(signal.SIGTERM)
        running.until("stopped")
        assert running.process.wait(STEP_S) == 0
        assert running.lines[0] == "node 1 begins first"
        assert running.order("ends") == ["node 3 ends", "node 2 ends", "node 1 ends"]


def test_a_process_that_ends_is_started_again_and_let_in(tmp_path: Path) -> None:
    with supervised(tmp_path, "", "") as running:
        running.until("node 2 hears open")
        os.kill(int((tmp_path / "2.pid").read_text()), signal.SIGKILL)
        running.until("node 2 was ended by signal 9 (SIGKILL); it is started again now")
        running.until("node 2 serves again")
        assert len(running.order("node 2 begins")) == 2
        running.process.send_signal(signal.SIGINT)
        running.until("stopped")
        assert running.process.wait(STEP_S) == 0


def test_a_restart_takes_one_process_after_the_other_and_waits_for_each(tmp_path: Path) -> None:
    with supervised(tmp_path, "", "awaited", "") as running:
        for node in (1, 2, 3):
            running.until(f"node {node} hears open")
        running.process.send_signal(signal.SIGUSR1)
        running.until("all processes were restarted")
        lines = [line.rpartition(": ")[2] for line in running.order("ends", "begins", "serves again")]
        assert lines[3:] == [
            line
            for node in (2, 3, 1)
            for line in (f"node {node} ends", f"node {node} begins" + " first" * (node == 1), f"node {node} serves again")
        ]
        running.process.send_signal(signal.SIGTERM)
        running.until("stopped")
        assert running.process.wait(STEP_S) == 0


def test_a_restart_asked_for_during_a_restart_follows_it_at_once(tmp_path: Path) -> None:
    """And not at the next event, which may be the end of a process days later."""
    with supervised(tmp_path, "", "awaited") as running:
        running.until("node 2 hears open")
        running.process.send_signal(signal.SIGUSR1)
        running.until("node 2 ends")
        running.process.send_signal(signal.SIGUSR1)
        running.until("all processes were restarted", times=2)
        assert len(running.order("restarting the processes")) == 2
        assert len(running.order("node 1 ends")) == 2


def test_a_restart_ends_at_a_process_that_does_not_come_back(tmp_path: Path) -> None:
    with supervised(tmp_path, "", str(tmp_path / "fails")) as running:
        running.until("node 2 hears open")
        (tmp_path / "fails").touch()
        running.process.send_signal(signal.SIGUSR1)
        running.until("node 2 does not start again; the restart ends here")
        assert not running.order("node 1 ends")
        (tmp_path / "fails").unlink()
        running.until("node 2 serves again")
        running.process.send_signal(signal.SIGTERM)
        running.until("stopped")
        assert running.process.wait(STEP_S) == 0


@pytest.mark.parametrize("arguments", [("fails", ""), ("", "fails")])
def test_a_process_that_cannot_start_ends_the_start(tmp_path: Path, arguments: tuple[str, str]) -> None:
    with supervised(tmp_path, *arguments, json_log=True) as running:
        running.until('"stopped"')
        assert running.process.wait(STEP_S) == 1
        (why,) = running.order("given up")
        entry = json.loads(why)
        assert (entry["level"], entry["logger"]) == ("ERROR", "tidelog.processes")
        assert entry["message"] == f"node {arguments.index('fails') + 1} ended with exit code 1; the start is given up"


def test_processes_notice_the_end_of_a_killed_supervisor(tmp_path: Path) -> None:
    with supervised(tmp_path, "", "") as running:
        running.until("node 2 hears open")
        running.process.kill()
        running.until("node 1 is alone")
        running.until("node 2 is alone")
