"""Rows of load on one node: a fresh tidelog and a fresh limit for each round of a row, one Apache Kafka for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.pair import frames
from bench.pair.machine import touch_memory
from bench.pair.rounds import turned
from bench.pair.rows import BATCH_16K
from bench.pair.sampling import LoadResult, generate, server_usage
from bench.pair.servers import Server
from bench.secure.rows import RATE, STAMP_IN_BATCH, paced_frames
from bench.secure.rows import generate as generate_paced
from bench.secure.sides import PLAINTEXT
from bench.warm import sides
from bench.warm.measured import Measured, measured, one_of
from bench.warm.rows import Load, Row
from bench.warm.sides import APACHE, LIMIT, TIDELOG
from bench.warm.steady import until_steady

ORDER = (LIMIT, TIDELOG, APACHE)
SLICES = 2
"""A sample has so many slices, between which the sides take turns: a machine may be faster for some seconds."""
MOST_BYTES = 3 << 30
"""That a sample writes at most: what is dirty must not have to be written out within it."""
LEAST_TOUCHED = 128 << 20
"""A slice that writes less does not depend on whether the host has its memory."""
FIRST = 256
"""Requests of the run that says how many a sample needs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much a run measures. ``cpu_s``: CPU seconds of a sample, by side; ``warm_s``: of a run that warms Kafka; ``most_warm``:
    such runs; ``burn_s``: CPU seconds that Kafka's JVM has run before them; ``slices``; ``smoke``: it shows only that it runs."""

    cpu_s: Mapping[str, float]
    warm_s: float
    most_warm: int
    burn_s: float = 0.0
    slices: int = SLICES
    smoke: bool = False


FULL = Plan({LIMIT: 1.0, TIDELOG: 5.0, APACHE: 5.0}, warm_s=4.0, most_warm=12, burn_s=60.0)
SMOKE = Plan({LIMIT: 0.05, TIDELOG: 0.05, APACHE: 0.05}, warm_s=0.05, most_warm=2, slices=1, smoke=True)


class Group(Protocol):
    """Rows that share servers, as the harness drives them."""

    def prepare(self, row: Row) -> list[float]:
        """Whatever a row needs before its first round: Kafka's costs until it was warm."""

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """A sample of each side."""

    def finish(self, row: Row) -> None:
        """After a row's last round."""


class Bench:
    """A row on a server: its topic, its frames, how much of the topic is written, and about what a request costs."""

    def __init__(self, row: Load, server: Server) -> None:
        self.row, self.server = row, server
        self._written = 0
        self.cost = 0.0
        """CPU microseconds of a request in the newest sample."""
        self._topic_id = server.create(row.topic, row.partitions)
        server.await_leaders(self._topic_id, row.partitions)
        if row.fill:
            batches = [frames.produce(row.topic, [index], BATCH_16K) for index in range(row.partitions)]
            generate(server.port, batches, 1, 4, row.fill * row.partitions)

    def run(self, requests: int) -> LoadResult:
        """That many."""
        row, port = self.row, self.server.port
        if not row.paced:
            return generate(port, row.frames(self._topic_id), row.connections, row.in_flight, requests)
        wanted = paced_frames(row.topic, self._topic_id, self._written)
        found = generate_paced(port, PLAINTEXT, wanted, "paced", row.connections, RATE, requests, STAMP_IN_BATCH)
        self._written += requests
        return found

    def sample(self, requests: int, everything: Sequence[Server]) -> Measured[LoadResult]:
        """CPU microseconds a request."""
        found = measured(lambda: self.run(requests), self.server, everything)
        self.cost = found.sample.cost / found.load.requests
        return replace(found, sample=replace(found.sample, cost=self.cost))

    def requests_for(self, cpu_s: float, most_bytes: float = MOST_BYTES) -> int:
        """As many as cost about so many CPU seconds, as far as disk and page cache allow."""
        wanted = cpu_s * 1e6 / max(self.cost, 0.1)
        if self.row.written:
            wanted = min(wanted, most_bytes / self.row.written)
        return max(64, int(wanted))


class NodeGroup:
    """All rows on one node."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._kafka = sides.apache(folder / "apache")
        self._warm: Bench | None = None

    def prepare(self, row: Row) -> list[float]:
        """Kafka's runs of this row, until two in a row cost the same."""
        assert isinstance(row, Load)
        bench = self._warm = Bench(row, self._kafka)
        bench.sample(FIRST, [self._kafka])

        def run() -> float:
            return bench.sample(bench.requests_for(self._plan.warm_s, MOST_BYTES / 4), [self._kafka]).sample.cost

        while (used := server_usage([self._kafka])).user + used.system < self._plan.burn_s:
            run()
        return until_steady(run, self._plan.most_warm)

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """Sides in turn, slice by slice."""
        assert isinstance(row, Load)
        assert self._warm is not None
        plan = self._plan
        with contextlib.ExitStack() as stack:
            fresh = {TIDELOG: sides.tidelog(self._folder / "tidelog", number)}
            stack.callback(fresh[TIDELOG].stop)
            fresh[LIMIT] = sides.limit(self._folder / "limit")
            stack.callback(fresh[LIMIT].stop)
            benches = {side: Bench(row, server) for side, server in fresh.items()} | {APACHE: self._warm}
            everything = [bench.server for bench in benches.values()]
            for side in fresh:
                benches[side].sample(FIRST, everything)
                benches[side].sample(benches[side].requests_for(plan.cpu_s[side] / 10), everything)
            parts: dict[str, list[Measured[LoadResult]]] = {side: [] for side in ORDER}
            for turn in range(plan.slices):
                for side in turned(ORDER, number + turn):
                    bench = benches[side]
                    requests = bench.requests_for(plan.cpu_s[side] / plan.slices, MOST_BYTES / plan.slices)
                    if (fresh_bytes := requests * row.written) > LEAST_TOUCHED and not plan.smoke:
                        touch_memory(self._folder, fresh_bytes)
                    parts[side].append(bench.sample(requests, everything))
            return {side: one_of(found) for side, found in parts.items()}

    def finish(self, row: Row) -> None:
        """The topic goes, and its files with it, before another row begins."""
        self._warm = None
        self._kafka.delete(row.topic, self._folder / "apache" / "data")

    def close(self) -> None:
        """Stop Kafka."""
        self._kafka.stop()


@contextmanager
def node_group(folder: Path, plan: Plan) -> Iterator[Group]:
    """With its Kafka running."""
    group = NodeGroup(folder, plan)
    try:
        yield group
    finally:
        group.close()
