"""Kafka's Java clients, whose writes add their partitions to the transaction themselves (KIP-890), on three nodes of ours.

Most of their partitions are led by other brokers than the one that coordinates, so that partitions ask over the wire; then the
coordinator is killed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.cluster import Cluster
from tests.node.transactional_run import QUICK_NODES, ClusterRun, coordinator, create
from tests.transactions.worker import INPUT, OUTPUT, PARTITIONS
from tidelog.model.ids import TRANSACTION_STATE_TOPIC
from tidelog.testing.checker import check

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
COMMITS_BETWEEN = 40


def test_transactions_of_java_clients_stay_whole_when_their_coordinator_is_killed(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", 3, properties=QUICK_NODES) as cluster:
        create(cluster, INPUT, OUTPUT, partitions=PARTITIONS)
        with ClusterRun(tmp_path / "run", cluster, lambda client: client.name in ("java", "reader")) as run:
            run.more_commits(COMMITS_BETWEEN)
            cluster.kill(coordinator(cluster, TRANSACTION_STATE_TOPIC, "java-producer"))
            run.more_commits(COMMITS_BETWEEN)
            cluster.start()
            run.finish()
            verdict = check(*sorted(run.histories.glob("*.jsonl")))
    assert verdict.valid, verdict.text()
    assert verdict.counts is not None and verdict.counts.commits >= 2 * COMMITS_BETWEEN, verdict.text()
