"""``dead-letters replay`` kills itself with SIGKILL before and after commits: each record is back in its topic once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.cli.dead_letters.cluster import DLQ, committed, give_up, make_topics
from tests.unit.cli.running_node import running_node
from tidelog.dead_letters.replaying import BATCH

LETTERS = 4 * BATCH
KILLED = """
import os, signal, sys
from tidelog.dead_letters.transactions import Transactions
from tidelog.cli.main import main

moment, left = sys.argv[1], int(sys.argv[2])
real = Transactions._do

def do(self, what, step):
    global left
    left -= what == "commit"
    if what == "commit" and not left and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, what, step)
    if what == "commit" and not left:
        os.kill(os.getpid(), signal.SIGKILL)

Transactions._do = do
main(sys.argv[3:])
"""
"""Runs the command until it is killed before or after a commit, which is counted."""
pytestmark = pytest.mark.timeout(240)


def replay(address: str, moment: str, commits: int) -> int:
    """The exit code."""
    words = ["share-groups", "dead-letters", "replay", DLQ, "--execute", "--bootstrap-server", address]
    command = [sys.executable, "-c", KILLED, moment, str(commits), *words]
    return subprocess.run(command, stdout=subprocess.DEVNULL, timeout=120, check=False).returncode


def test_each_record_is_replayed_once_however_often_the_command_is_killed(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        make_topics(address)
        give_up(address, range(LETTERS))
        for moment, commits in (("before", 1), ("after", 1), ("before", 2)):
            assert replay(address, moment, commits) == -signal.SIGKILL
        assert replay(address, "never", 0) == 0
        written = committed(address, "jobs", isolation="read_uncommitted")
        assert len(written) == 2 * LETTERS + 2 * BATCH, "two transactions were not committed"
        found = committed(address, "jobs")
        assert Counter(value for value, _ in found) == {f"job {number}": 2 for number in range(LETTERS)}
        assert {headers["__dlq.replay.count"] for _, headers in found[LETTERS:]} == {"1"}
