"""A round: every row on every side, on fresh nodes, the order of the sides turning from row to row and from round to round."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench.pair import counting, servers, tasks
from bench.pair.checkouts import Checkout
from bench.pair.frames import Frame, produce
from bench.pair.rows import BATCH_16K, Load, Task, tail_frames
from bench.pair.sampling import TAIL_GAP_US, LoadResult, Sample, generate, server_usage, timed, together
from bench.pair.servers import Server

Turning = TypeVar("Turning")
WARM, COUNTED_WARM = 2_000, 300
COUNTED_TAIL_GAP_US = 20_000
OLD, NEW, LIMIT = "old", "new", "limit"
PARTS, SLICES, TASK_SLICES = 20, 6, 2
"""A timed sample has so many slices, each of a twentieth of the row's requests. The sides take turns slice by slice, for a
machine may be a third faster for some seconds; and many short rounds, each with fresh processes, for so may a process."""


@dataclass(frozen=True, slots=True)
class Side:
    """What takes part: a revision (``checkout``), or the C limit. A warm Apache Kafka would be one more, with a ``Server``."""

    name: str
    checkout: Checkout | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run measures. ``count``: instructions instead of time; ``scale``: times the rows' numbers of requests."""

    folder: Path
    count: bool
    scale: float


class Bench:
    """One load on one server: its topic, its frames, and how much of its topic is written."""

    def __init__(self, load: Load, server: Server, plan: Plan) -> None:
        self.load, self.server, self._plan = load, server, plan
        self._topic_id = server.create(load.topic, load.partitions)
        if load.fill:
            generate(server.port, [produce(load.topic, [0], BATCH_16K)], 1, 4, load.fill)
        build = load.counted_build if plan.count and load.counted_build else load.build
        self._frames: list[Frame] = build(load.topic, self._topic_id)
        self._written = 0
        self.run(COUNTED_WARM if plan.count else max(100, int(WARM * min(1.0, plan.scale))))

    def run(self, requests: int) -> LoadResult:
        """That many requests."""
        load = self.load
        if not load.tail:
            connections = load.counted_connections if self._plan.count and load.counted_connections else load.connections
            return generate(self.server.port, self._frames, connections, load.in_flight, requests)
        gap = COUNTED_TAIL_GAP_US if self._plan.count else TAIL_GAP_US
        wanted = tail_frames(load.topic, self._topic_id, self._written)
        result = generate(self.server.port, wanted, 0, gap, requests)
        self._written += requests
        return result

    def timed(self, everything: Sequence[Server]) -> Sample:
        """CPU microseconds a request, in one slice."""
        os.sync()  # what is dirty is written out before, not by this slice
        requests = max(100, int(self.load.requests * self._plan.scale / PARTS))
        sample = timed(lambda: server_usage(everything), lambda: self.run(requests), lambda: server_usage([self.server]))
        self.server.check()
        return replace(sample, cost=sample.cost / sample.amount)

    def counted(self) -> Sample:
        """Instructions a request, of all nodes."""
        requests = max(100, int(self.load.counted * self._plan.scale))
        for pid in self.server.pids:
            counting.begin(pid)
        result = self.run(requests)
        total = 0
        for number, pid in enumerate(self.server.pids):
            total += counting.dump(pid, callgrind_file(self.server.home, number))
            counting.stop(pid)
        return Sample(total / requests, requests, seconds=result.seconds)


def callgrind_file(home: Path, number: int) -> Path:
    """Where a node's counts go."""
    return home / f"callgrind-{number}"


def started(side: Side, group: str, home: Path, seed: int, *, count: bool) -> Server:
    """The server of a side for a group of rows."""
    assert side.checkout is not None, "the limit is started for each row"
    home.mkdir(parents=True)

    def prefix(number: int) -> list[str]:
        return counting.prefix(callgrind_file(home, number), from_start=False) if count else []

    if group == "cluster":
        return servers.cluster(side.checkout, home, seed, [prefix(number) for number in range(3)])
    return servers.node(side.checkout, home, seed, prefix(0))


def turned(sides: Sequence[Turning], by: int) -> list[Turning]:
    """The sides in another order: each is first, second and last equally often."""
    first = by % len(sides)
    order = [*sides[first:], *sides[:first]]
    return order if by // len(sides) % 2 == 0 else [order[0], *reversed(order[1:])]


Found = Callable[[str, str, Sample], None]


def load_group(sides: Sequence[Side], loads: Sequence[Load], number: int, plan: Plan, found: Found) -> None:
    """The rows of one group of loads."""
    with contextlib.ExitStack() as stack:
        running: dict[str, Server] = {}
        for side in sides:
            if side.checkout is not None:
                home = plan.folder / f"{side.name}-{loads[0].group}"
                running[side.name] = started(side, loads[0].group, home, number, count=plan.count)
                stack.callback(running[side.name].stop)
        for at, load in enumerate(loads):
            with contextlib.ExitStack() as row:
                here = dict(running)
                for side in sides:
                    if side.checkout is None:
                        here[side.name] = servers.limit(plan.folder / "limit")
                        row.callback(here[side.name].stop)
                        here[side.name].await_answer()
                benches = {side.name: Bench(load, here[side.name], plan) for side in sides}
                if plan.count:
                    for side in turned(sides, number + at):
                        found(load.name, side.name, benches[side.name].counted())
                else:
                    slices = in_turns(
                        sides, SLICES, number + at, partial(timed_slice, benches=benches, everything=list(here.values()))
                    )
                    for name, parts in slices.items():
                        found(load.name, name, together(parts))


def timed_slice(side: Side, benches: Mapping[str, Bench], everything: Sequence[Server]) -> Sample:
    """One slice of a load on a side."""
    return benches[side.name].timed(everything)


def in_turns(sides: Sequence[Side], times: int, by: int, sample: Callable[[Side], Sample]) -> dict[str, list[Sample]]:
    """That many slices of each side, all sides once before any comes again."""
    slices: dict[str, list[Sample]] = {side.name: [] for side in sides}
    for turn in range(times):
        for side in turned(sides, by + turn):
            slices[side.name].append(sample(side))
    return slices


def task_rows(sides: Sequence[Side], wanted: Sequence[Task], number: int, plan: Plan, found: Found) -> None:
    """The rows that are no load. Tools talk to a node of their own revision."""
    with contextlib.ExitStack() as stack:
        running: dict[str, Server] = {}
        if any(task.kind in {"list", "reader"} for task in wanted):
            for side in sides:
                assert side.checkout is not None
                running[side.name] = servers.node(side.checkout, plan.folder / f"{side.name}-tools", number)
                stack.callback(running[side.name].stop)
            for server in running.values():
                for topic in ("a", "b", "c"):
                    server.create(topic, 3)
                tasks.fill_for_reader(server)
        for at, task in enumerate(wanted):
            times = 1 if plan.count or task.kind == "memory" else TASK_SLICES
            slices = in_turns(sides, times, number + at, partial(one_task, task, running=running, seed=number, plan=plan))
            for name, parts in slices.items():
                found(task.name, name, parts[0] if len(parts) == 1 else together(parts))


def one_task(task: Task, side: Side, running: Mapping[str, Server], seed: int, plan: Plan) -> Sample:
    """A row of one side."""
    assert side.checkout is not None
    server, nodes = running.get(side.name), list(running.values())
    home = plan.folder / f"{side.name}-{task.kind}"
    try:
        if task.kind == "memory":
            return tasks.idle_memory(side.checkout, home, seed)
        if task.kind == "start":
            first = servers.node(side.checkout, home, seed)  # formats the directory, and compiles what Python keeps compiled
            try:
                first.create("one", 1)
            finally:
                first.stop_cleanly()
            return (tasks.counted_start if plan.count else tasks.timed_start)(side.checkout, home, seed)
        if task.kind == "import":
            command = tasks.importing(side.checkout)
        else:
            assert server is not None
            command = tasks.command_of(task.kind, side.checkout, server)
        if task.kind == "reader":
            if plan.count:
                return tasks.counted_reader(command, seed, plan.folder)
            return tasks.timed_reader(command, seed, nodes, plan.scale)
        return tasks.counted_tool(command, seed, plan.folder) if plan.count else tasks.timed_tool(command, seed, nodes)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def one_round(sides: Sequence[Side], rows: Sequence[Load | Task], number: int, plan: Plan) -> dict[str, dict[str, Sample]]:
    """By row and side. ``number`` is the seed of Python's hashes, too: one layout of memory for both revisions."""
    samples: dict[str, dict[str, Sample]] = {row.name: {} for row in rows}

    def found(row: str, side: str, sample: Sample) -> None:
        samples[row][side] = sample
        print(f"  {row}: {side} {sample.cost:,.5g}", file=sys.stderr, flush=True)

    for group in groups(rows):
        load_group(sides, group, number, plan, found)
    revisions = [side for side in sides if side.checkout is not None]
    if wanted := [row for row in rows if isinstance(row, Task)]:
        task_rows(revisions, wanted, number, plan, found)
    return samples


def groups(rows: Sequence[Load | Task]) -> Iterator[list[Load]]:
    """Loads that share a server."""
    for group in ("node", "cluster"):
        if loads := [row for row in rows if isinstance(row, Load) and row.group == group]:
            yield loads
