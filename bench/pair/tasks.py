"""Rows that are no load: a tool against a running node, an import, a node's start and idle memory, Spark's reader by itself."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.pair import counting, frames, machine, servers
from bench.pair.checkouts import Checkout
from bench.pair.machine import Usage
from bench.pair.processes import run
from bench.pair.rows import BATCH_16K, ONE_RECORD
from bench.pair.sampling import LoadResult, Sample, generate, server_usage, timed
from bench.pair.servers import Server, surroundings

RUN_S = 600.0
SETTLE_S = 3.0
"""After the first answer, before memory is read."""
TOOL_RUNS, START_RUNS = 2, 1
READER_PASSES = 80
"""Of a slice."""
READER_TOPIC = "reader"
READER_BATCHES = 400
"""Of 100 records of 100 bytes; a batch in ten has records of 1 KiB."""
PROBE = Path(__file__).with_name("reader_probe.py")


def command_of(kind: str, checkout: Checkout, server: Server) -> list[str]:
    """The process that a row of tools measures."""
    if kind == "list":
        return checkout.command("topics", "--bootstrap-server", f"127.0.0.1:{server.port}", "--list")
    return [str(checkout.python), str(PROBE), f"127.0.0.1:{server.port}", READER_TOPIC]


def importing(checkout: Checkout) -> list[str]:
    """A process that only imports what tests import."""
    return [str(checkout.python), "-c", "import tidelog.testing"]


def fill_for_reader(server: Server) -> None:
    """The topic that Spark's reader reads."""
    server.create(READER_TOPIC, 1)
    small = frames.produce(READER_TOPIC, [0], frames.batch(100, 100))
    large = frames.produce(READER_TOPIC, [0], BATCH_16K)
    generate(server.port, [small] * 9 + [large], 1, 1, READER_BATCHES)


def _tool_usage(command: Sequence[str], seed: int, times: int) -> Usage:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        run(command, surroundings(seed), Path("/"), RUN_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, after.ru_nvcsw - before.ru_nvcsw)


def timed_tool(command: Sequence[str], seed: int, running: Sequence[Server]) -> Sample:
    """CPU milliseconds of a run; what the ``running`` nodes use is not in it, and not noise either."""
    found: list[Usage] = []

    def work() -> None:
        found.append(_tool_usage(command, seed, TOOL_RUNS))

    sample = timed(lambda: server_usage(running), work, lambda: sum(found, Usage(0, 0, 0)))
    return replace(sample, cost=(sample.user + sample.system) * 1e3 / TOOL_RUNS, amount=TOOL_RUNS)


def counted_tool(command: Sequence[str], seed: int, folder: Path) -> Sample:
    """Instructions of a run."""
    out = folder / "tool.callgrind"
    run([*counting.prefix(out, from_start=True), *command], surroundings(seed), Path("/"), RUN_S)
    total = counting.parse_total(out.read_text(errors="replace"))
    out.unlink()
    return Sample(total, 1)


def timed_reader(command: Sequence[str], seed: int, running: Sequence[Server], scale: float) -> Sample:
    """CPU microseconds of a row, as the reader's process measures itself, without imports, planning and nodes."""
    said: list[dict[str, float]] = []

    def used() -> Usage:
        return Usage(said[-1]["user_s"], said[-1]["system_s"], 0) if said else Usage(0, 0, 0)

    def work() -> None:
        passes = str(max(5, int(READER_PASSES * scale)))
        said.append(json.loads(run([*command, passes], surroundings(seed), Path("/"), RUN_S)))

    sample = timed(lambda: server_usage(running), work, used)
    rows = int(said[-1]["rows"])
    return replace(sample, cost=sample.cost / rows, amount=rows)


def counted_reader(command: Sequence[str], seed: int, folder: Path) -> Sample:
    """Instructions of a row. The probe says itself when to count: its imports are a hundred times what it reads."""
    out = folder / "reader.callgrind"
    said = json.loads(run([*counting.prefix(out, from_start=False), *command, "--count"], surroundings(seed), Path("/"), RUN_S))
    found = out.with_name(f"{out.name}.1")
    total, rows = counting.parse_total(found.read_text(errors="replace")), int(said["rows"])
    for path in folder.glob("reader.callgrind*"):
        path.unlink()
    return Sample(total / rows, rows)


def timed_start(checkout: Checkout, home: Path, seed: int) -> Sample:
    """CPU milliseconds from the creation of a node's process to its first answer, on a directory that is formatted."""
    used: list[Usage] = []

    def work() -> LoadResult | None:
        for _ in range(START_RUNS):
            server = servers.node(checkout, home, seed)
            try:
                server.await_answer()
                used.append(machine.usage_of(server.pids))
            finally:
                server.stop_cleanly()
        return None

    sample = timed(lambda: Usage(0, 0, 0), work, lambda: sum(used, Usage(0, 0, 0)))
    return replace(sample, cost=(sample.user + sample.system) * 1e3 / START_RUNS, amount=START_RUNS)


def counted_start(checkout: Checkout, home: Path, seed: int) -> Sample:
    """Instructions from the creation of a node's process to its first answer."""
    out = home / "start.callgrind"
    server = servers.node(checkout, home, seed, counting.prefix(out, from_start=True))
    try:
        server.await_answer()
        return Sample(counting.dump(server.pids[0], out), 1)
    finally:
        server.stop_cleanly()


def idle_memory(checkout: Checkout, home: Path, seed: int) -> Sample:
    """MiB that a node has resident, some seconds after its start, with one topic of one record."""
    server = servers.node(checkout, home, seed)
    try:
        server.create("one", 1)
        generate(server.port, [frames.produce("one", [0], ONE_RECORD)], 1, 1, 1)
        time.sleep(SETTLE_S)
        return Sample(machine.resident(server.pids[0]) / 2**20, 1)
    finally:
        server.stop()
