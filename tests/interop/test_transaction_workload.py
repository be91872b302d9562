"""The transactional workload in its short form: a real node, real clients, a nemesis, and the checker's word.

A run that shows something holds at least a thousand commits, a thousand aborts and a hundred failures of the coordinator. ``make
transactions`` does it longer and again and again.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.interop.java import JavaSide
from tests.interop.nodes import ROOT
from tests.transactions.workload import Run

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
SECONDS = 60


def test_transactions_stay_whole_whatever_happens_to_node_clients_network_and_clock(tmp_path: Path, java: JavaSide) -> None:
    seed = time.time_ns() % 1_000_000
    run = Run(tmp_path / "run", seed, java=java)
    verdict = None
    try:
        verdict = run.go(SECONDS, commits=1000, aborts=1000, failures=100)
    finally:
        if verdict is None or not verdict.valid:
            kept = ROOT / "build" / "transactions" / f"seed-{seed}"
            shutil.copytree(run.home, kept, dirs_exist_ok=True)
            print(f"seed {seed}; all that was recorded is in {kept.relative_to(ROOT)}")
    assert verdict.valid, verdict.text()
    told = verdict.counts
    assert told is not None
    assert min(told.commits, told.aborts) >= 1000, verdict.text()
    assert run.failures >= 100
