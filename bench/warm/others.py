"""Rows beside the table: a Kafka whose JVM is fresh, and Kafka's own clients, whose JVM needs more CPU than the broker."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench import java_load
from bench.pair import frames
from bench.pair.rounds import turned
from bench.pair.rows import BATCH_128K
from bench.pair.sampling import LoadResult, generate, server_usage
from bench.pair.servers import LOOPBACK, Server
from bench.warm import sides
from bench.warm.control import control
from bench.warm.loads import Bench, Group, Plan
from bench.warm.measured import Measured, measured
from bench.warm.rows import LOADS, JavaLoad, Load, Row
from bench.warm.sides import APACHE, LIMIT, TIDELOG
from bench.warm.steady import until_steady

COLD_REQUESTS, SMOKE_REQUESTS = 20_000, 200
RECORDS_A_BATCH = 126
SMOKE_RECORDS = 5_000
MOST_JAVA_RUNS = 6


class ColdGroup:
    """All sides fresh in each round, and measured from their first request on."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan

    def prepare(self, row: Row) -> list[float]:
        """Nothing: that is the point."""
        return []

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """One side after another, each alone."""
        assert isinstance(row, Load)
        start = {
            LIMIT: lambda: sides.limit(self._folder / "limit"),
            TIDELOG: lambda: sides.tidelog(self._folder / "tidelog", number),
            APACHE: lambda: sides.apache(self._folder / "apache"),
        }
        found = {}
        for side in turned(tuple(start), number):
            with ExitStack() as stack:
                server = start[side]()
                stack.callback(server.stop)
                found[side] = Bench(row, server).sample(SMOKE_REQUESTS if self._plan.smoke else COLD_REQUESTS, [server])
        return found

    def finish(self, row: Row) -> None:
        """Nothing."""


@contextmanager
def cold_group(folder: Path, plan: Plan) -> Iterator[Group]:
    """Without anything running."""
    yield ColdGroup(folder, plan)


class JavaBench:
    """A row of Kafka's clients on a server."""

    def __init__(self, row: JavaLoad, server: Server) -> None:
        self._row, self._server = row, server
        topic_id = server.create(row.topic, row.partitions)
        server.await_leaders(topic_id, row.partitions)
        if row.fetches:
            batches = [frames.produce(row.topic, [index], BATCH_128K) for index in range(row.partitions)]
            generate(server.port, batches, 1, 4, -(-row.amount // RECORDS_A_BATCH) + row.partitions)

    def sample(self, records: int, everything: Sequence[Server]) -> Measured[LoadResult]:
        """CPU microseconds of the broker a record; the client's CPU is that of its whole process."""
        found = measured(lambda: self._run(records), self._server, everything)
        return replace(found, sample=replace(found.sample, cost=found.sample.cost / found.load.requests))

    def _run(self, records: int) -> LoadResult:
        row, bootstrap = self._row, f"{LOOPBACK}:{self._server.port}"
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        if row.fetches:
            said = java_load.bench("consume", bootstrap, row.topic, records)
        else:
            said = java_load.produce(bootstrap, row.topic, records, row.size, row.batch, "all", "none")
        after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
        seconds = records / said["records_per_s"]
        # what the client used, brought to the seconds in which it worked: the generator's cores are its CPU over those seconds
        share = seconds / wall_s
        user, system = (after.ru_utime - before.ru_utime) * share, (after.ru_stime - before.ru_stime) * share
        return LoadResult(records, seconds, user, system, records * row.size)


class JavaGroup:
    """One warm Kafka, a fresh tidelog for each round."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder, self._plan = folder, plan
        self._kafka = sides.apache(folder / "apache")
        self._warm: JavaBench | None = None

    def _amount(self, row: JavaLoad) -> int:
        return SMOKE_RECORDS if self._plan.smoke else row.amount

    def prepare(self, row: Row) -> list[float]:
        """The JVM runs hot by prepared requests first, then by the row's own client until two runs cost the same."""
        assert isinstance(row, JavaLoad)
        bench = self._warm = JavaBench(row, self._kafka)
        if (used := server_usage([self._kafka])).user + used.system < self._plan.burn_s:
            hot = Bench(LOADS[0], self._kafka)
            while (used := server_usage([self._kafka])).user + used.system < self._plan.burn_s:
                hot.sample(hot.requests_for(self._plan.warm_s) if hot.cost else COLD_REQUESTS, [self._kafka])
        most = min(MOST_JAVA_RUNS, self._plan.most_warm)
        return until_steady(lambda: bench.sample(self._amount(row), [self._kafka]).sample.cost, most)

    def one_round(self, row: Row, number: int) -> Mapping[str, Measured[LoadResult]]:
        """One run of the client on each side."""
        assert isinstance(row, JavaLoad)
        assert self._warm is not None
        found = {LIMIT: control(self._folder, [self._kafka], smoke=self._plan.smoke)}
        server = sides.tidelog(self._folder / "tidelog", number)
        try:
            benches = {TIDELOG: JavaBench(row, server), APACHE: self._warm}
            for side in turned((TIDELOG, APACHE), number):
                found[side] = benches[side].sample(self._amount(row), [server, self._kafka])
        finally:
            server.stop()
        return found

    def finish(self, row: Row) -> None:
        """The topic goes, and its files with it."""
        self._warm = None
        self._kafka.delete(row.topic, self._folder / "apache" / "data")

    def close(self) -> None:
        """Stop Kafka."""
        self._kafka.stop()


@contextmanager
def java_group(folder: Path, plan: Plan) -> Iterator[Group]:
    """With its Kafka running."""
    group = JavaGroup(folder, plan)
    try:
        yield group
    finally:
        group.close()
