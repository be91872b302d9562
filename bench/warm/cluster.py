"""Rows on three nodes: one cluster of each kind for all rounds, RF 3, acks=all, min.insync.replicas 2, Kafka's own times."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.cluster_rows import CLIENTS, LATENCY_BATCH, native_clients
from bench.cluster_sides import NODES, BenchCluster, fresh_cluster
from bench.pair import machine
from bench.pair.machine import Usage
from bench.pair.processes import Failed
from bench.pair.rounds import turned
from bench.pair.sampling import LoadResult, server_usage, timed
from bench.pair.servers import Server
from bench.warm.control import control
from bench.warm.loads import Group, Plan
from bench.warm.measured import Measured, measured
from bench.warm.rows import Rate, Row
from bench.warm.sides import APACHE, LIMIT, TIDELOG
from bench.warm.steady import until_steady
from tests.interop.nodes import ROOT, environment

SIZE = 100
WARMUP_S = 1
LEAST_S, MOST_S = 4, 20
FIRST_RECORDS, LEAST_RECORDS, SMOKE_RECORDS = 500_000, 100_000, 20_000
NATIVE_CLIENTS = 2
LAUNCH_S = 120.0


def as_server(cluster: BenchCluster) -> Server:
    """The cluster's processes, as samples want them."""
    return Server(cluster.directory, list(cluster.ports.values()), list(cluster.running.values()))


class ClusterBench:
    """A row on a cluster: about what a record costs there, and how many CPU seconds a sample has."""

    def __init__(self, row: Rate, cluster: BenchCluster, plan: Plan, side: str) -> None:
        self._row, self._cluster, self._plan, self._side = row, cluster, plan, side
        self._server = as_server(cluster)
        self.cost = 0.0
        cluster.create(row.topic, row.partitions)

    def sample(self, everything: Sequence[Server], cpu_s: float | None = None) -> Measured[LoadResult]:
        """CPU microseconds a record, on all nodes together."""
        cpu_us = (cpu_s or self._plan.cpu_s[self._side]) * 1e6
        wanted = cpu_us / self.cost if self.cost else FIRST_RECORDS
        found = self._at_rate(everything, wanted / (self._row.rate or 1)) if self._row.rate else self._full(everything, wanted)
        self.cost = found.sample.cost
        return found

    def _full(self, everything: Sequence[Server], records: float) -> Measured[LoadResult]:
        amount = SMOKE_RECORDS if self._plan.smoke else max(LEAST_RECORDS, int(records))

        def work() -> LoadResult:
            said = native_clients(self._cluster, self._row.topic, amount, NATIVE_CLIENTS)
            sent = int(said["records"])
            return LoadResult(sent, said["seconds"], said["client_cpu_s"], 0.0, sent * SIZE)

        found = measured(work, self._server, everything)
        return replace(found, sample=replace(found.sample, cost=found.sample.cost / found.load.requests))

    def _at_rate(self, everything: Sequence[Server], seconds: float) -> Measured[LoadResult]:
        row = self._row
        duration = 1 if self._plan.smoke else max(LEAST_S, min(MOST_S, round(seconds)))
        how = (row.topic, row.partitions, row.rate, duration, WARMUP_S, SIZE, CLIENTS, LATENCY_BATCH)
        command = [sys.executable, "-m", row.client, self._cluster.bootstrap, *map(str, how)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment()) as client:
            try:
                return self._between(client, everything)
            finally:
                client.kill()

    def _between(self, client: subprocess.Popen[str], everything: Sequence[Server]) -> Measured[LoadResult]:
        """What the nodes use between the client's words "begin" and "end"; then its numbers."""

        def until(word: str) -> None:
            assert client.stdout is not None
            for line in client.stdout:
                if line.strip() == word:
                    return
            assert client.stderr is not None
            raise Failed(f"{self._row.client} ended before it said {word}:\n{client.stderr.read()[-1500:]}")

        def own() -> Usage:
            used = server_usage(everything)
            with contextlib.suppress(OSError):
                used += machine.usage(client.pid)
            return used

        until("begin")
        sample = timed(own, lambda: until("end"), lambda: server_usage([self._server]))
        out, said = client.communicate(timeout=LAUNCH_S)
        if client.returncode:
            raise Failed(f"{self._row.client} ended with {client.returncode}:\n{said[-1500:]}")
        numbers = json.loads(out.strip().splitlines()[-1])
        if numbers["failed"]:
            raise Failed(f"{numbers['failed']} records were not taken")
        records = int(numbers["records"])
        latencies = {f"consumed_{name}": numbers[name] for name in ("p50_ms", "p99_ms", "p999_ms")}
        load = LoadResult(records, numbers["seconds"], numbers["client_cpu_s"], 0.0, records * SIZE, latencies)
        generator = numbers["client_cpu_s"] / numbers["seconds"]
        return Measured(replace(sample, cost=sample.cost / records, amount=records, generator=generator), load)


class ClusterGroup:
    """All rows on three nodes."""

    def __init__(self, folder: Path, plan: Plan, clusters: Mapping[str, BenchCluster]) -> None:
        self._folder, self._plan, self._clusters = folder, plan, clusters
        self._everything = [as_server(each) for each in clusters.values()]
        self._benches: dict[str, ClusterBench] = {}

    def prepare(self, row: Row) -> list[float]:
        """Kafka's runs of this row, until two in a row cost the same; two of tidelog's."""
        assert isinstance(row, Rate)
        plan = self._plan
        self._benches = {side: ClusterBench(row, cluster, plan, side) for side, cluster in self._clusters.items()}
        for _ in range(1 if plan.smoke else 2):
            self._benches[TIDELOG].sample(self._everything, plan.warm_s / 2)
        warm = self._benches[APACHE]
        while (used := server_usage([as_server(self._clusters[APACHE])])).user + used.system < NODES * plan.burn_s:
            warm.sample(self._everything, plan.warm_s)
        return until_steady(lambda: warm.sample(self._everything, plan.warm_s).sample.cost, plan.most_warm)

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """One sample of each kind, and of the limit."""
        found = {}
        for side in turned((LIMIT, TIDELOG, APACHE), number):
            if side == LIMIT:
                found[side] = control(self._folder, self._everything, smoke=self._plan.smoke)
            else:
                found[side] = self._benches[side].sample(self._everything)
        return found

    def finish(self, row: Row) -> None:
        """Topics stay: what an idle partition costs is little, and files are not unlinked within another row."""
        self._benches = {}


@contextmanager
def cluster_group(folder: Path, plan: Plan) -> Iterator[Group]:
    """With both clusters running."""
    with fresh_cluster(TIDELOG, "tidelog", folder) as ours, fresh_cluster(APACHE, "apache", folder) as kafka:
        yield ClusterGroup(folder, plan, {TIDELOG: ours, APACHE: kafka})
