"""One sample of a load on a server: what it cost the server, and what the generator saw."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from bench.pair.sampling import LoadResult, Sample, server_usage, timed, together
from bench.pair.servers import Server

Seen = TypeVar("Seen", bound=LoadResult)


@dataclass(frozen=True)
class Measured(Generic[Seen]):
    """``sample.cost`` is CPU in the row's unit."""

    sample: Sample
    load: Seen

    def to_json(self) -> dict[str, object]:
        """As it stands in the file of results."""
        return {**self.sample.to_json(), **self.load.to_json()}


def measured(work: Callable[[], Seen], server: Server, everything: Sequence[Server]) -> Measured[Seen]:
    """Do the work on ``server``; the cost is CPU microseconds for all of it. ``everything``: the servers that are no noise. Dirty
    pages of before are written out before, not by this sample."""
    os.sync()
    seen: list[Seen] = []

    def counted() -> LoadResult:
        seen.append(work())
        return seen[0]

    sample = timed(lambda: server_usage(everything), counted, lambda: server_usage([server]))
    server.check()
    return Measured(sample, seen[0])


def one_of(slices: Sequence[Measured[Seen]]) -> Measured[Seen]:
    """One sample of several slices: sums, and the medians of costs and latencies."""
    loads = [each.load for each in slices]
    load = replace(
        loads[0],
        requests=sum(each.requests for each in loads),
        seconds=sum(each.seconds for each in loads),
        user=sum(each.user for each in loads),
        system=sum(each.system for each in loads),
        moved=sum(each.moved for each in loads),
        latencies={name: statistics.median(each.latencies[name] for each in loads) for name in loads[0].latencies},
    )
    return Measured(together([each.sample for each in slices]), load)
