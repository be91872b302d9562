"""The console under measurement: a process of its own that counts, and what it and the brokers use."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

READY = "tidelog console is ready at "
PATIENCE_S = 120.0
NS = 1e9


def cpu_seconds(pid: int) -> float:
    """CPU time that the living threads of a process have used, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / NS


def resident_mb(pid: int, what: str = "VmRSS") -> float:
    """Resident memory of one process in MiB, or its largest so far (``VmHWM``)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    return 0.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a stretch of work took. ``brokers``: CPU seconds by node id; ``requests``: by API and address of the broker."""

    seconds: float
    console: float
    brokers: Mapping[int, float]
    requests: Mapping[str, int]
    longest_ms: float

    def by_broker(self, addresses: Mapping[int, str]) -> dict[int, int]:
        """Requests by node id."""
        return {
            node_id: sum(count for key, count in self.requests.items() if key.endswith(f" {address}"))
            for node_id, address in addresses.items()
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 4),
            "console_cpu_s": round(self.console, 4),
            "brokers_cpu_s": {str(node_id): round(spent, 4) for node_id, spent in self.brokers.items()},
            "requests": dict(self.requests),
            "longest_turn_cpu_ms": round(self.longest_ms, 1),
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """``wire``: bytes as they came; ``plain``: after gzip."""

    status: int
    wire: int
    plain: int
    seconds: float
    data: Any


class Console:
    """A running console."""

    def __init__(self, process: subprocess.Popen[str], url: str, counts: Path, brokers: Mapping[int, int]) -> None:
        self.process, self.url, self.brokers = process, url, brokers
        self._counts = counts
        self._where = urlsplit(url)

    def ask(self, path: str) -> Reply:
        """A read of the API, as a browser asks."""
        connection = http.client.HTTPConnection(self._where.hostname or "", self._where.port or 0, timeout=PATIENCE_S)
        began = time.perf_counter()
        connection.request("GET", f"{self._where.path}api/v1/{path}", headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        seconds = time.perf_counter() - began
        connection.close()
        plain = gzip.decompress(body) if answer.getheader("Content-Encoding") == "gzip" else body
        try:
            data = json.loads(plain)
        except ValueError:
            data = None
        return Reply(answer.status, len(body), len(plain), seconds, data)

    def counts(self) -> dict[str, Any]:
        """What was counted since the last look."""
        self._counts.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + PATIENCE_S
        while not self._counts.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the console does not say what it counted")
            time.sleep(0.005)
        found: dict[str, Any] = json.loads(self._counts.read_text())
        return found

    @contextmanager
    def measured(self) -> Iterator[list[Spent]]:
        """What the block takes of console and brokers stands in the list after it."""
        found: list[Spent] = []
        self.counts()
        before = {node_id: cpu_seconds(pid) for node_id, pid in self.brokers.items()}
        own, began = cpu_seconds(self.process.pid), time.perf_counter()
        yield found
        seconds, console = time.perf_counter() - began, cpu_seconds(self.process.pid) - own
        brokers = {node_id: cpu_seconds(pid) - before[node_id] for node_id, pid in self.brokers.items()}
        counts = self.counts()
        found.append(Spent(seconds, console, brokers, counts["requests"], counts["longest_ms"]))

    def memory(self) -> float:
        """Resident now, MiB."""
        return resident_mb(self.process.pid)

    def most_memory(self) -> float:
        """The most that was resident so far, MiB."""
        return resident_mb(self.process.pid, "VmHWM")


@contextmanager
def console(bootstrap: str, folder: Path, brokers: Mapping[int, int]) -> Iterator[Console]:
    """A fresh one. ``brokers``: the processes whose CPU counts, by node id."""
    counts = folder / f"counts-{time.monotonic_ns()}"
    flags = ["--bootstrap-server", bootstrap, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.console.counted_console", str(counts), *flags],
        cwd=Path(__file__).resolve().parent.parent.parent,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line.startswith(READY):
            raise RuntimeError(f"the console did not start: {line}")
        yield Console(process, line.removeprefix(READY), counts, brokers)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        counts.unlink(missing_ok=True)
