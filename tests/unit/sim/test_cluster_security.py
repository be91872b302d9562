"""Clusters with logins and ACLs in virtual time, in a short form; the long one is ``make sim-cluster``."""

import os
import subprocess
import sys

import pytest

from sim.cluster_bugs import planted
from sim.cluster_checks import Violation
from sim.cluster_security_bugs import SECURITY_BUGS
from sim.cluster_world import ClusterRun

pytestmark = [pytest.mark.filterwarnings("error:coroutine .* was never awaited"), pytest.mark.timeout(600)]
BUSY_S = 15.0
FOUND_BY = {"long polls decide only what grew": 2, "fetch sessions stay quiet": 2}
"""The first seed that finds a bug, where it is not 1."""


def test_nodes_decide_by_what_they_have_read_while_rights_come_and_go() -> None:
    report = ClusterRun(1, busy_s=BUSY_S, secure=True).run()
    for what in ("requests to read", "requests to write"):
        assert report.rare[f"{what} that were allowed"] > 0
        assert report.rare[f"{what} that were refused"] > 0
    assert report.rare["logins that succeeded"] > 0
    assert report.rare["logins that were refused"] > 0


@pytest.mark.parametrize("bug", SECURITY_BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    with planted(bug), pytest.raises(Violation, match="rex's"):
        ClusterRun(FOUND_BY.get(bug, 1), busy_s=BUSY_S, secure=True).run()


def test_a_seed_gives_the_same_run_under_every_hash_seed() -> None:
    program = (
        "import dataclasses; from sim.cluster_world import ClusterRun; "
        "print(dataclasses.asdict(ClusterRun(5, busy_s=4.0, secure=True).run()))"
    )
    printed = set()
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        printed.add(done.stdout)
    assert len(printed) == 1
