"""Three nodes, broker and controller in each, of tidelog or of Apache Kafka; every topic has one replica."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.cluster_sides import BenchCluster
from bench.sides import KAFKA_FLAGS

TIDELOG, APACHE = "tidelog", "apache"
KINDS = (TIDELOG, APACHE)
HEAP = "1G"
"""Of each Apache Kafka node: what its own start script gives."""
PROPERTIES = {
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "50",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "min.insync.replicas": "1",
    "log.retention.ms": "-1",
}
"""Kafka's defaults for the internal topics, but for one replica."""


class ConsoleCluster(BenchCluster):
    """A cluster with so large a heap for each node, where nodes have one."""

    def __init__(self, kind: str, directory: Path, heap: str = HEAP) -> None:
        super().__init__(kind, kind, directory)
        self.heap = heap
        self.properties = {**self.properties, **PROPERTIES}

    def command(self, node_id: int, properties: Path) -> list[str]:
        found = super().command(node_id, properties)
        return [each.replace("1G", self.heap) if each in KAFKA_FLAGS[:2] else each for each in found]

    def pids(self) -> dict[int, int]:
        """The processes, by node id."""
        return {node_id: process.pid for node_id, process in sorted(self.running.items())}


@contextmanager
def cluster(kind: str, root: Path, heap: str = HEAP) -> Iterator[ConsoleCluster]:
    """Formatted and started; killed and its data removed in the end."""
    home = root / kind
    try:
        with ConsoleCluster(kind, home, heap) as found:
            yield found
    finally:
        shutil.rmtree(home, ignore_errors=True)
