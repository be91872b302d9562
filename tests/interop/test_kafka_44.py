"""Apache Kafka 4.4: its clients against our nodes, and its broker beside our nodes, both ways. 4.4.0's tools are not published,
so Kafka's tools elsewhere are those of 4.3."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.java import JVM_FLAGS, LOG4J
from tests.interop.test_mixed_cluster import MixedCluster, leaders_move
from tests.node.cluster import Cluster
from tidelog.model.errors import ErrorCode
from tools.jars import compiled_against

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

HERE = Path(__file__).parent.parent / "systems" / "kafka44"
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "2",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}


def expected(partitions: int) -> list[str]:
    """What Apache Kafka 4.4.0's clients print with a broker of 4.4.0."""
    letters = [
        f"letter key{job} job{job} topic=jobs partition={partition} offset={job} group=workers delivery.count={count} "
        f"message={why}"
        for job, count, why in (
            (1, 1, "Offset rejected by client."),
            (3, 2, "Offset delivery count exceeded the threshold."),
        )
        for partition in range(partitions)
    ]
    return [
        "read 6",
        *(f"delivered job{job} {2 if job == 3 else 1}" for job in range(6)),
        *letters,
        "groups [letters:Consumer, outside:Classic, readers:Consumer, workers:Share]",
        "outside 1",
        "done",
    ]


def clients(bootstrap: str, replicas: int, partitions: int) -> list[str]:
    """What they print."""
    classes, jars = compiled_against(HERE)
    flags = [*JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=error"]
    command = ["java", *flags, "-cp", f"{jars}/*:{classes}", "DeadLetters", bootstrap, str(replicas), str(partitions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


class Kafka44Cluster(MixedCluster):
    """The nodes of Apache Kafka run 4.4.0; all were formatted by tidelog."""

    def __init__(self, directory: Path, count: int, apache: Iterable[int], **more: Any) -> None:
        super().__init__(directory, count, apache, properties=SETTINGS, **more)

    def command(self, node_id: int, properties: Path) -> list[str]:
        if node_id not in self.apache:
            return super().command(node_id, properties)
        flags = [*JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=info"]
        return ["java", *flags, "-cp", str(compiled_against(HERE)[1] / "*"), "kafka.Kafka", str(properties)]


def test_clients_work_with_our_nodes_as_with_apaches(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, properties=SETTINGS) as cluster:
        assert clients(cluster.bootstrap, 2, 2) == expected(2)


def test_an_apache_broker_serves_under_our_controllers(tmp_path: Path) -> None:
    with Kafka44Cluster(tmp_path, 2, apache=[2]) as cluster:
        leaders_move(cluster, 1, 2)
        assert clients(cluster.bootstrap, 2, 4) == expected(4)
        cluster.kill(cluster.active_controller())
        cluster.until(lambda: cluster.create(2, "after", [1, 2]) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS))


def test_our_broker_serves_under_an_apache_controller(tmp_path: Path) -> None:
    with Kafka44Cluster(tmp_path, 2, apache=[2, 101], controllers=1) as cluster:
        leaders_move(cluster, 1, 2)
        assert clients(cluster.bootstrap, 2, 4) == expected(4)
