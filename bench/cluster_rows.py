"""What is measured on three nodes: RF 3, acks=all, min.insync.replicas 2. As ``bench.rows``, with a cluster for the node."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cluster_sides import BenchCluster, fresh_cluster
from bench.java_load import RUN_LIMIT_S, LoadFailed, java_command
from bench.leaderless import Probes
from bench.rows import Numbers
from bench.sides import cpu_seconds
from tests.interop.nodes import ROOT, NodeFailed, environment
from tests.node.cluster import Cluster, ClusterFailed

CLIENTS = 4
"""Producers, and consumers."""
PARTITIONS = 16
LATENCY_BATCH, THROUGHPUT_BATCH = 131072, 1048576
"""batch.size in the OpenMessaging benchmark's own settings for Kafka."""


@dataclass(frozen=True, slots=True)
class ClusterScale:
    """How much of everything."""

    seconds: int
    warmup: int
    native_records: int
    native_clients: int
    kills: int
    partitions: int
    steady_s: int


CLUSTER_FULL = ClusterScale(30, 15, 10_000_000, 4, 5, 2000, 60)
CLUSTER_QUICK = ClusterScale(6, 5, 1_500_000, 2, 2, 2000, 10)
CLUSTER_SMOKE = ClusterScale(2, 1, 100_000, 1, 1, 60, 1)


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One line of the result."""

    name: str
    kind: str  # replicated (an end-to-end time at a rate), produce, gap, cpu
    main: str
    unit: str
    higher_is_better: bool
    work: Callable[[BenchCluster, ClusterScale], Numbers]


# The OpenMessaging shape


def open_messaging(cluster: BenchCluster, scale: ClusterScale, topic: str, rate: int, size: int, batch: int) -> Numbers:
    """In a topic of its own."""
    cluster.create(topic, PARTITIONS)
    os.sync()
    return run_open_messaging(cluster, topic, PARTITIONS, rate, scale.seconds, scale.warmup, size, CLIENTS, batch)


def by_raw_requests(cluster: BenchCluster, scale: ClusterScale, topic: str, rate: int, size: int) -> Numbers:
    """The same by ``bench.wire_rate``, which leaves the machine to the nodes."""
    cluster.create(topic, PARTITIONS)
    os.sync()
    how = (PARTITIONS, rate, scale.seconds, scale.warmup, size, CLIENTS, LATENCY_BATCH)
    return run_load(cluster, [sys.executable, "-m", "bench.wire_rate", cluster.bootstrap, topic, *map(str, how)])


def cpu_of(cluster: Cluster) -> float:
    """CPU seconds of all nodes that run."""
    return sum(cpu_seconds(process.pid) for process in cluster.running.values())


def run_open_messaging(cluster: Cluster, *how: object) -> Numbers:
    """The numbers of OpenMessaging.java, with what the nodes used between its "begin" and "end"."""
    return run_load(cluster, java_command("OpenMessaging", *map(str, (cluster.bootstrap, *how))))


def run_load(cluster: Cluster, command: list[str]) -> Numbers:
    """The same of any command that prints these words and numbers."""
    cpu = {}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        last = ""
        for line in process.stdout:
            last = line.strip()
            if last in ("begin", "end"):
                cpu[last] = cpu_of(cluster)
        said = process.stderr.read()
        if process.wait(RUN_LIMIT_S):
            raise LoadFailed(f"the load ended with {process.returncode}:\n{said[-1500:]}")
    numbers: Numbers = json.loads(last)
    if numbers["failed"]:
        raise LoadFailed(f"{numbers['failed']} records were not taken")
    used = cpu["end"] - cpu["begin"]
    per_million = used / numbers["records"] * 1e6
    return {**numbers, "all_cpu_s": round(used, 2), "broker_cpu_s": round(per_million, 3)}


def throughput_row() -> ClusterRow:
    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        return open_messaging(cluster, scale, "throughput", 0, 1024, THROUGHPUT_BATCH)

    return ClusterRow(
        "1 KiB, 16 partitions, 4 producers and 4 consumers at full speed", "produce", "mb_per_s", "MiB/s", True, work
    )


def rate_row(rate: int, size: int, name: str) -> ClusterRow:
    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        return open_messaging(cluster, scale, f"rate-{rate}-{size}", rate, size, LATENCY_BATCH)

    return ClusterRow(f"{name} at {rate:,}/s, end to end", "replicated", "p99_ms", "ms (p99)", False, work)


def light_rate_row(rate: int, size: int, name: str) -> ClusterRow:
    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        return by_raw_requests(cluster, scale, f"light-{rate}-{size}", rate, size)

    return ClusterRow(f"{name} at {rate:,}/s by raw requests, end to end", "replicated", "p99_ms", "ms (p99)", False, work)


def native_row() -> ClusterRow:
    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        topic = "native"
        cluster.create(topic, PARTITIONS)
        native_clients(cluster, "warm-up-native", scale.native_records // 5, scale.native_clients)
        os.sync()
        before = cpu_of(cluster)
        numbers = native_clients(cluster, topic, scale.native_records, scale.native_clients)
        used = cpu_of(cluster) - before
        busy = (used + numbers["client_cpu_s"]) / numbers["seconds"] / (os.cpu_count() or 1)
        per_million = used / numbers["records"] * 1e6
        return {**numbers, "all_cpu_s": round(used, 2), "broker_cpu_s": round(per_million, 3), "machine_busy": round(busy, 2)}

    return ClusterRow("100 B records by librdkafka, acks=all", "produce", "records_per_s", "records/s", True, work)


def native_clients(cluster: BenchCluster, topic: str, records: int, clients: int) -> Numbers:
    """Some processes at once; LoadFailed unless the topic then holds all that they sent, beside what it held before."""
    cluster.create(topic, PARTITIONS)
    before = cluster.ends(topic)
    each = records // clients
    command = [sys.executable, "-m", "bench.native_producer", cluster.bootstrap, topic, str(each), "100"]
    running = [
        subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(clients)
    ]
    found = []
    for process in running:
        printed, said = process.communicate(timeout=RUN_LIMIT_S)
        if process.returncode:
            raise LoadFailed(f"a native producer ended with {process.returncode}:\n{said[-1500:]}")
        found.append(json.loads(printed))
    held = cluster.ends(topic) - before
    if held != each * clients:
        raise LoadFailed(f"{topic} holds {held} records of {each * clients}")
    seconds = max(one["seconds"] for one in found)
    cpu = sum(one["cpu_s"] for one in found)
    return {"records": each * clients, "seconds": seconds, "records_per_s": each * clients / seconds, "client_cpu_s": cpu}


# Without a leader


def gap_row(name: str, sign: signal.Signals, *, controller: bool) -> ClusterRow:
    """Kill or stop the leader of the probed partition, who is the active controller, too, or is not."""

    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        gaps = [one_gap(cluster, f"gap-{sign.name}-{controller}-{turn}", sign, controller) for turn in range(scale.kills)]
        return summary(gaps)

    return ClusterRow(name, "gap", "ms", "ms", False, work)


def summary(gaps: list[float]) -> Numbers:
    """Median, extremes and all of them."""
    numbers: dict[str, Any] = {"ms": statistics.median(gaps), "least_ms": min(gaps), "most_ms": max(gaps), "all_ms": gaps}
    return numbers


def one_gap(cluster: BenchCluster, topic: str, sign: signal.Signals, controller: bool) -> float:
    """A topic of three partitions, of which each node leads one; the victim's is probed."""
    cluster.create(topic, len(cluster.brokers))
    active = cluster.controller()
    victim = active if controller else next(each for each in cluster.brokers if each != active)
    led = [index for index, leader, _ in cluster.partitions(topic, victim) if leader == victim]
    if not led:
        raise LoadFailed(f"node {victim} leads no partition of {topic}")
    with Probes(cluster.ports, topic, led[0]) as probes:
        cluster.until(lambda: len(probes.acked) > 50, "probes are acknowledged")
        moment = time.perf_counter()
        over = end_node(cluster, victim, sign)
        cluster.until(lambda: probes.acked_since(max(moment, over()) + 0.2), "probes are acknowledged again")
        gap = probes.longest_gap_ms(moment)
    if victim in cluster.running:
        cluster.stop(victim)
    cluster.start(victim)
    cluster.until(lambda: cluster.in_sync(topic, len(cluster.brokers)), "all replicas are in sync", 120)
    return round(gap, 1)


def end_node(cluster: BenchCluster, victim: int, sign: signal.Signals) -> Callable[[], float]:
    """Send it; what is returned tells when the process had ended (infinity: not yet)."""
    process = cluster.running[victim]
    if sign is signal.SIGKILL:
        cluster.kill(victim)
        ended = time.perf_counter()
        return lambda: ended
    process.send_signal(sign)
    seen: list[float] = []

    def over() -> float:
        if not seen and process.poll() is not None:
            seen.append(time.perf_counter())
            cluster.running.pop(victim, None)
        return seen[0] if seen else float("inf")

    return over


# 2,000 partitions


def steady_row() -> ClusterRow:
    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        cluster.create("many", scale.partitions)
        time.sleep(scale.steady_s / 2)
        before, began = cpu_of(cluster), time.perf_counter()
        time.sleep(scale.steady_s)
        share = (cpu_of(cluster) - before) / (time.perf_counter() - began)
        return {"percent": round(share * 100, 2), "memory_mb": round(cluster.memory(), 1)}

    return ClusterRow("2,000 partitions, RF 3, idle: CPU of all nodes", "cpu", "percent", "% of a core", False, work)


def many_gap_row(name: str, sign: signal.Signals) -> ClusterRow:
    """Until each of the partitions has a leader that runs, as a node that is left tells."""

    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        cluster.create("many", scale.partitions)
        cluster.prefer("many", scale.partitions)
        active = cluster.controller()
        victim, left = (each for each in cluster.brokers if each != active)
        moment = time.perf_counter()
        over = end_node(cluster, victim, sign)

        def moved() -> bool:
            told = cluster.partitions("many", left)
            return len(told) == scale.partitions and all(leader not in (victim, -1) for _, leader, _ in told)

        cluster.until(moved, "all partitions are led elsewhere", 120)
        took = (time.perf_counter() - moment) * 1000
        cluster.until(lambda: over() < float("inf"), "the node has ended", 120)
        cluster.start(victim)
        cluster.until(lambda: cluster.in_sync("many", scale.partitions), "all replicas are in sync", 120)
        return {"ms": round(took, 1), "back_s": round(time.perf_counter() - moment, 2)}

    return ClusterRow(name, "gap", "ms", "ms", False, work)


def many_probe_row(name: str, sign: signal.Signals) -> ClusterRow:
    """How long single ones of them are without a leader: the first, the middle and the last that the victim led."""

    def work(cluster: BenchCluster, scale: ClusterScale) -> Numbers:
        cluster.create("many", scale.partitions)
        cluster.prefer("many", scale.partitions)
        active = cluster.controller()
        victim = next(each for each in cluster.brokers if each != active)
        led = [index for index, leader, _ in cluster.partitions("many", victim) if leader == victim]
        sample = (led[0], led[len(led) // 2], led[-1])
        with ExitStack() as stack:
            probes = [stack.enter_context(Probes(cluster.ports, "many", index)) for index in sample]
            cluster.until(lambda: all(len(each.acked) > 50 for each in probes), "probes are acknowledged", 60)
            moment = time.perf_counter()
            over = end_node(cluster, victim, sign)
            cluster.until(
                lambda: all(each.acked_since(max(moment, over()) + 0.2) for each in probes), "probes are acknowledged again", 120
            )
            gaps = [round(each.longest_gap_ms(moment), 1) for each in probes]
        cluster.start(victim)
        cluster.until(lambda: cluster.in_sync("many", scale.partitions), "all replicas are in sync", 120)
        return summary(gaps)

    return ClusterRow(name, "gap", "ms", "ms", False, work)


def cluster_groups() -> list[list[ClusterRow]]:
    """Each group has a fresh cluster."""
    rates = [rate_row(10_000, 100, "100 B"), rate_row(10_000, 1024, "1 KiB"), light_rate_row(10_000, 100, "100 B")]
    load = [*rates, throughput_row(), native_row()]
    gaps = [
        gap_row("kill -9 of a leader", signal.SIGKILL, controller=False),
        gap_row("kill -9 of a leader that is the active controller", signal.SIGKILL, controller=True),
        gap_row("clean stop of a leader", signal.SIGTERM, controller=False),
        gap_row("clean stop of a leader that is the active controller", signal.SIGTERM, controller=True),
    ]
    many = [
        steady_row(),
        many_gap_row("2,000 partitions: kill -9, until all are led", signal.SIGKILL),
        many_gap_row("2,000 partitions: clean stop, until all are led", signal.SIGTERM),
        many_probe_row("2,000 partitions: clean stop, one of them without a leader", signal.SIGTERM),
    ]
    return [load, gaps, many]


def measured(cluster: BenchCluster, row: ClusterRow, scale: ClusterScale) -> dict[str, Any]:
    """The row's numbers; a row that fails says so and does not end the run."""
    try:
        numbers: dict[str, Any] = row.work(cluster, scale)
    except (LoadFailed, NodeFailed, ClusterFailed, AssertionError, OSError) as failed:
        numbers = {"failed": str(failed)}
    shown = numbers.get(row.main)
    print(
        f"  {cluster.name:12} {row.name}: {numbers['failed'] if shown is None else f'{shown:,.4g} {row.unit}'}", file=sys.stderr
    )
    return numbers


def cluster_round(
    names: list[tuple[str, str]], groups: list[list[ClusterRow]], scale: ClusterScale, data: Path
) -> dict[str, dict[str, Any]]:
    """Every side in turn: for each group of rows three fresh nodes."""
    found: dict[str, dict[str, Any]] = {name: {} for name, _ in names}
    for rows in filter(None, groups):
        for name, kind in names:
            with fresh_cluster(name, kind, data) as cluster:
                for row in rows:
                    found[name][row.name] = measured(cluster, row, scale)
    return found
