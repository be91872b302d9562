"""Kafka's system-test matrix in its short form: one cluster of three nodes under load, one fault after the other, one judgement.

The whole of it, with a fresh cluster for each fault and separate controllers as well, is ``make matrix``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.matrix.cluster import MatrixCluster
from tests.matrix.load import NODE_SETTINGS, Load
from tests.matrix.running import SECURE, judge, run
from tests.matrix.scenarios import MATRIX, Trial

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a process all of 127.0.0.0/8"),
    pytest.mark.timeout(400),
]

SHORT = (
    "hard-bounce-leader",
    "clean-bounce-controller",
    "pause-leader",
    "isolate-controller",
    "unheard-leader",
    "deaf-controller",
    "clients-cut",
    "disk-fails",
)


def test_nothing_acknowledged_is_lost_torn_or_double_whatever_happens_to_three_nodes(tmp_path: Path) -> None:
    with (
        MatrixCluster(tmp_path / "nodes", 3, combined=True, properties=NODE_SETTINGS) as cluster,
        Load(tmp_path / "load", cluster) as load,
    ):
        trial = Trial(cluster, load, print, bounces=1, more=5)
        trial.whole()
        for name in SHORT:
            MATRIX[name].run(trial)
            trial.whole()
        verdict, wrong = judge(cluster, load, errors=True)
    assert not wrong, "\n".join(wrong)
    told = verdict.counts
    assert told is not None and told.commits >= 4 * 5 * len(SHORT), verdict.text()


def test_a_secured_cluster_loses_nothing_and_its_nodes_decide_alike_after_the_active_controller_is_killed(tmp_path: Path) -> None:
    """While the rights of another user than the clients' change."""
    result = run("hard-stop-controller", MATRIX["hard-stop-controller"], f"combined{SECURE}", tmp_path, print)
    assert not result.wrong, "\n".join(result.wrong)
    assert result.commits > 0


def test_the_matrix_finds_what_a_leader_alone_had_acknowledged(tmp_path: Path) -> None:
    result = run("planted-acks-1", MATRIX["planted-acks-1"], "combined", tmp_path, print)
    assert not result.wrong and result.found
