"""Rounds of samples: every row on every side, in an order that turns; Apache Kafka's JVM is one for all of them, and warm."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.pair.rounds import turned
from bench.pair.sampling import LoadResult, Sample, server_usage, timed, together
from bench.pair.servers import Server
from bench.secure import sides
from bench.secure.rows import Bench, Row, TlsLoad
from bench.secure.sides import APACHE, COPYING, LIMIT, TIDELOG

STEADY = 0.05
"""Two runs of a warm JVM differ by less than this share of the lower one."""
LEAST_WARM_RUNS, MOST_WARM_RUNS = 4, 16
SLICES = 3
"""A sample has so many slices, between which the sides take turns: a machine may be faster for some seconds."""
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """One sample: what it cost the broker, and what the generator saw."""

    sample: Sample
    load: TlsLoad

    @property
    def rate(self) -> float:
        """Requests, records or connections a second."""
        return self.load.requests / self.load.seconds

    def to_json(self) -> dict[str, object]:
        """As it stands in the file of results."""
        load = self.load
        return {
            **self.sample.to_json(),
            "mb_per_s": load.mb_per_s,
            "rate": self.rate,
            "moved": load.moved,
            "cipher": load.cipher,
            "resumed": load.resumed,
            "latencies": load.latencies,
        }


@dataclass(slots=True)
class Warm:
    """Apache Kafka: the server, its row's benches, and what each run of a row cost until two were alike."""

    server: Server
    benches: dict[str, Bench] = field(default_factory=dict)
    runs: dict[str, list[float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """What the runs cost, by row."""
        return {row: {"costs": costs, "steady": is_steady(costs)} for row, costs in self.runs.items()}


def cost_per_unit(row: Row, cpu_us: float, load: TlsLoad) -> float:
    """CPU seconds a GiB, or CPU microseconds a record or a connection."""
    return cpu_us / 1e6 / (load.moved / GIB) if row.unit == "GiB" else cpu_us / load.requests


def is_steady(costs: Sequence[float]) -> bool:
    """Whether the last two runs are alike; the first ones may be so by chance."""
    return len(costs) >= LEAST_WARM_RUNS and abs(costs[-1] - costs[-2]) < STEADY * min(costs[-2:])


def until_steady(run: Callable[[], float], most: int = MOST_WARM_RUNS) -> list[float]:
    """The costs of runs until two in a row are alike, or of as many as are allowed."""
    costs: list[float] = []
    while len(costs) < most and not is_steady(costs):
        costs.append(run())
    return costs


def measure(bench: Bench, amount: int, everything: Sequence[Server]) -> Measured:
    """One sample."""
    os.sync()  # what is dirty is written out before, not by this sample
    seen: list[TlsLoad] = []

    def work() -> LoadResult:
        seen.append(bench.run(amount))
        return seen[0]

    found = timed(lambda: server_usage(everything), work, lambda: server_usage([bench.server]))
    cost = cost_per_unit(bench.row, found.cost, seen[0])
    return Measured(replace(found, cost=cost), seen[0])


def joined(slices: Sequence[Measured]) -> Measured:
    """One sample of several slices: sums, and the medians of costs and latencies."""
    loads = [each.load for each in slices]
    load = TlsLoad(
        requests=sum(each.requests for each in loads),
        seconds=sum(each.seconds for each in loads),
        user=sum(each.user for each in loads),
        system=sum(each.system for each in loads),
        moved=sum(each.moved for each in loads),
        cipher=loads[0].cipher,
        resumed=sum(each.resumed for each in loads),
        latencies={name: statistics.median(each.latencies[name] for each in loads) for name in loads[0].latencies},
    )
    return Measured(together([each.sample for each in slices]), load)


def scaled(row: Row, scale: float) -> int:
    """How much of a row's work a sample is; at least a round of its frames."""
    return max(64, int(row.amount * scale))


@contextmanager
def warm_apache(rows: Sequence[Row], folder: Path, pem: Path, scale: float, most: int) -> Iterator[Warm]:
    """The node, each row of which was run until it cost the same twice."""
    found = Warm(sides.apache(folder / "apache", pem))
    try:
        for row in rows:
            if APACHE in row.sides:
                bench = found.benches[row.name] = Bench(row, found.server)
                amount = scaled(row, scale)

                def run(bench: Bench = bench, amount: int = amount) -> float:
                    return measure(bench, amount, [found.server]).sample.cost

                costs = found.runs[row.name] = until_steady(run, most)
                tell(f"  warm: {row.name}: {', '.join(f'{cost:.4g}' for cost in costs)}")
        yield found
    finally:
        found.server.stop()


def one_round(
    rows: Sequence[Row], number: int, warm: Warm | None, folder: Path, pem: Path, scale: float
) -> dict[str, dict[str, Measured]]:
    """By row and side. tidelog's nodes are fresh, and the limit is so for each row; ``number`` seeds Python's hashes."""
    found: dict[str, dict[str, Measured]] = {row.name: {} for row in rows}
    with contextlib.ExitStack() as stack:
        nodes = {TIDELOG: sides.tidelog(folder / "tidelog", pem, number)}
        stack.callback(nodes[TIDELOG].stop)
        if any(COPYING in row.sides for row in rows):
            nodes[COPYING] = sides.tidelog(folder / "copying", pem, number, copying=True)
            stack.callback(nodes[COPYING].stop)
        for at, row in enumerate(rows):
            with contextlib.ExitStack() as of_row:
                nodes[LIMIT] = sides.limit(folder / "limit", pem)
                of_row.callback(nodes[LIMIT].stop)
                benches = {side: Bench(row, nodes[side]) for side in row.sides if side in nodes}
                if warm is not None and APACHE in row.sides:
                    benches[APACHE] = warm.benches[row.name]
                everything = [*nodes.values(), *([warm.server] if warm else [])]
                amount = scaled(row, scale)
                for bench in benches.values():
                    bench.run(max(64, amount // 10))
                slices: dict[str, list[Measured]] = {side: [] for side in benches}
                times = SLICES if scale >= 1 else 1
                for turn in range(times):
                    for side in turned([each for each in row.sides if each in benches], number + at + turn):
                        slices[side].append(measure(benches[side], max(64, amount // times), everything))
                for side, parts in slices.items():
                    found[row.name][side] = measured = joined(parts)
                    tell(f"  {row.name}: {side} {measured.sample.cost:,.4g}, {measured.load.mb_per_s:,.0f} MB/s")
    return found


def tell(text: str) -> None:
    """On standard error."""
    print(text, file=sys.stderr, flush=True)
