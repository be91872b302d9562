"""The brokers that are measured: fresh, with their own defaults, and what they use of the machine."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, answers

TICKS = os.sysconf("SC_CLK_TCK")
# What Kafka's own start script gives its JVM.
KAFKA_FLAGS = (
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
START_LIMIT_S = 60


def processes(root: int) -> list[int]:
    """A process and its descendants."""
    found = [root]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def cpu_seconds(root: int) -> float:
    """CPU time used so far, user and system, by a process and its descendants, ended ones included."""
    total = 0
    for pid in processes(root):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(int(value) for value in (fields[11:15] if pid == root else fields[11:13]))
    return total / TICKS


def resident_mb(root: int) -> float:
    """Resident memory, in MiB."""
    total = 0
    for pid in processes(root):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


@dataclass
class Side:
    """One broker under measurement, on a directory of its own."""

    name: str
    kind: str
    node: Node

    @property
    def pid(self) -> int:
        assert self.node.process is not None
        return self.node.process.pid

    @property
    def port(self) -> int:
        return self.node.ports[0]

    def cpu(self) -> float:
        return cpu_seconds(self.pid)

    def memory(self) -> float:
        return resident_mb(self.pid)

    def timed_start(self) -> float:
        """Start; seconds from the process's creation to the first answered request."""
        began = time.perf_counter()
        self.node.launch()
        while not answers(self.port):
            assert self.node.process is not None
            assert self.node.process.poll() is None, f"{self.name} ended while starting:\n{self.node.log_tail()}"
            assert time.perf_counter() - began < START_LIMIT_S, f"{self.name} does not answer:\n{self.node.log_tail()}"
            time.sleep(0.002)
        return time.perf_counter() - began


@contextmanager
def fresh(name: str, kind: str, root: Path, java: JavaSide, properties: dict[str, str] | None = None) -> Iterator[Side]:
    """A side, formatted but not started; killed and its data removed in the end."""
    home = root / f"{name}-{time.monotonic_ns()}"
    home.mkdir(parents=True)
    node = Node(kind, home, java, properties or {}, features={}, jvm_flags=KAFKA_FLAGS)
    try:
        node.format()
        yield Side(name, kind, node)
    finally:
        node.kill()
        shutil.rmtree(home, ignore_errors=True)
