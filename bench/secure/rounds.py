"""Rounds of samples: every row on every side, in an order that turns; Apache Kafka's JVM is one for all of them, and warm."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.pair.rounds import turned
from bench.pair.servers import Server
from bench.secure import sides
from bench.secure.rows import Bench, Row, TlsLoad
from bench.secure.sides import APACHE, COPYING, LIMIT, TIDELOG
from bench.warm.measured import Measured, measured, one_of
from bench.warm.steady import is_steady, until_steady

SLICES = 3
"""A sample has so many slices, between which the sides take turns: a machine may be faster for some seconds."""
GIB = 1 << 30


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


def measure(bench: Bench, amount: int, everything: Sequence[Server]) -> Measured[TlsLoad]:
    """One sample."""
    found = measured(lambda: bench.run(amount), bench.server, everything)
    return replace(found, sample=replace(found.sample, cost=cost_per_unit(bench.row, found.sample.cost, found.load)))


def joined(slices: Sequence[Measured[TlsLoad]]) -> Measured[TlsLoad]:
    """One sample of several slices: sums, and the medians of costs and latencies."""
    found = one_of(slices)
    return replace(found, load=replace(found.load, resumed=sum(each.load.resumed for each in slices)))


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
) -> dict[str, dict[str, Measured[TlsLoad]]]:
    """By row and side. tidelog's nodes are fresh, and the limit is so for each row; ``number`` seeds Python's hashes."""
    found: dict[str, dict[str, Measured[TlsLoad]]] = {row.name: {} for row in rows}
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
                slices: dict[str, list[Measured[TlsLoad]]] = {side: [] for side in benches}
                times = SLICES if scale >= 1 else 1
                for turn in range(times):
                    for side in turned([each for each in row.sides if each in benches], number + at + turn):
                        slices[side].append(measure(benches[side], max(64, amount // times), everything))
                for side, parts in slices.items():
                    found[row.name][side] = whole = joined(parts)
                    tell(f"  {row.name}: {side} {whole.sample.cost:,.4g}, {whole.load.mb_per_s:,.0f} MB/s")
    return found


def tell(text: str) -> None:
    """On standard error."""
    print(text, file=sys.stderr, flush=True)
