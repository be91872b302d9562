"""Rows that the C limit does not serve have it beside them all the same, with one record a request: where it moves, the machine
has moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.pair import frames
from bench.pair.rows import ONE_RECORD
from bench.pair.sampling import LoadResult, generate
from bench.pair.servers import Server
from bench.warm import sides
from bench.warm.measured import Measured, measured

CONNECTIONS, FIRST, REQUESTS, SMOKE_REQUESTS = 8, 20_000, 300_000, 2_000
TOPIC = "control"


def control(folder: Path, running: Sequence[Server], *, smoke: bool) -> Measured[LoadResult]:
    """CPU microseconds a request of a fresh limit."""
    wanted = [frames.produce(TOPIC, [0], ONE_RECORD, acks=1)]
    server = sides.limit(folder / "control")
    try:

        def run(requests: int) -> LoadResult:
            return generate(server.port, wanted, CONNECTIONS, 1, requests)

        run(SMOKE_REQUESTS if smoke else FIRST)
        found = measured(lambda: run(SMOKE_REQUESTS if smoke else REQUESTS), server, [server, *running])
        return replace(found, sample=replace(found.sample, cost=found.sample.cost / found.load.requests))
    finally:
        server.stop()
