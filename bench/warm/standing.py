"""Rows without load: start and memory of a new node, and three nodes with 2,000 partitions that do nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.cluster_sides import BenchCluster, fresh_cluster
from bench.pair.rounds import turned
from bench.pair.sampling import LoadResult, Sample, server_usage, timed
from bench.sides import fresh
from bench.warm.cluster import as_server
from bench.warm.control import control
from bench.warm.loads import Group, Plan
from bench.warm.measured import Measured
from bench.warm.rows import Row, Standing
from bench.warm.sides import APACHE, LIMIT, TIDELOG
from tests.interop.java import JavaSide

SETTLE_S, IDLE_S = 3.0, 10.0
PARTITIONS, SMOKE_PARTITIONS = 2_000, 20
QUIET_S = 30.0
"""After the partitions are there, before three nodes are idle."""
KAFKA_ROUNDS = 3


def figure(value: float) -> Measured[LoadResult]:
    """A value that is no CPU time."""
    return Measured(Sample(value, 1), LoadResult(1, 1.0, 0.0, 0.0))


class StartGroup:
    """Fresh nodes, the directory formatted before. Kafka's JVM is as cold as it is at any start."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._java = JavaSide(folder / "java.log")

    def prepare(self, row: Row) -> list[float]:
        """Nothing."""
        return []

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """A start of each kind."""
        assert isinstance(row, Standing)
        found = {LIMIT: control(self._folder, [], smoke=self._plan.smoke)}
        for side in turned((TIDELOG, APACHE), number):
            with fresh(side, side, self._folder, self._java) as node:
                seconds = node.timed_start()
                if row.kind == "memory":
                    time.sleep(0 if self._plan.smoke else SETTLE_S)
                found[side] = figure(seconds if row.kind == "start" else node.memory())
        return found

    def finish(self, row: Row) -> None:
        """Nothing."""

    def close(self) -> None:
        """End the JVM that formats directories."""
        self._java.close()


@contextmanager
def start_group(folder: Path, plan: Plan) -> Iterator[Group]:
    """Without anything running."""
    group = StartGroup(folder, plan)
    try:
        yield group
    finally:
        group.close()


class IdleGroup:
    """Three nodes of one kind at a time: three idle JVMs with these partitions fill two cores. Kafka's come first, for three
    rounds; tidelog's run through all of them."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._partitions = SMOKE_PARTITIONS if plan.smoke else PARTITIONS
        self._kafka: list[tuple[Measured[LoadResult], float]] = []
        self._ours: BenchCluster | None = None
        self._times = 1 if plan.smoke else KAFKA_ROUNDS

    def filled(self, cluster: BenchCluster) -> None:
        """Partitions made, and what that causes over."""
        cluster.create("many", self._partitions)
        time.sleep(0 if self._plan.smoke else QUIET_S)

    def measure_kafka(self) -> None:
        """Its rounds."""
        with fresh_cluster(APACHE, "apache", self._folder) as cluster:
            self.filled(cluster)
            self._kafka = [(self._idle(cluster), cluster.memory()) for _ in range(self._times)]

    def begin(self, cluster: BenchCluster) -> None:
        """tidelog's turn."""
        self.filled(cluster)
        self._ours = cluster

    def prepare(self, row: Row) -> list[float]:
        """Nothing: see the class."""
        return []

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """Ten idle seconds."""
        assert isinstance(row, Standing)
        assert self._ours is not None
        found = {LIMIT: control(self._folder, [as_server(self._ours)], smoke=self._plan.smoke)}
        cpu = row.kind == "idle"
        found[TIDELOG] = self._idle(self._ours) if cpu else figure(self._ours.memory())
        if number < len(self._kafka):
            idle, memory = self._kafka[number]
            found[APACHE] = idle if cpu else figure(memory)
        return found

    def _idle(self, cluster: BenchCluster) -> Measured[LoadResult]:
        """Percent of a core."""
        server = as_server(cluster)
        seconds = 1.0 if self._plan.smoke else IDLE_S
        sample = timed(lambda: server_usage([server]), lambda: time.sleep(seconds), lambda: server_usage([server]))
        percent = (sample.user + sample.system) / sample.seconds * 100
        return Measured(replace(sample, cost=percent), LoadResult(1, sample.seconds, 0.0, 0.0))

    def finish(self, row: Row) -> None:
        """Nothing."""


@contextmanager
def idle_group(folder: Path, plan: Plan) -> Iterator[Group]:
    """Kafka's rounds measured and its nodes gone, tidelog's running."""
    group = IdleGroup(folder, plan)
    group.measure_kafka()
    with fresh_cluster(TIDELOG, "tidelog", folder) as cluster:
        group.begin(cluster)
        yield group
