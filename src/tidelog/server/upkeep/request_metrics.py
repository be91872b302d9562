"""Metrics of requests: how many, how long, how many are parked; and of syncs of logs, which some of them wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tidelog.broker.request_times import FETCH_CONSUMER, FETCH_FOLLOWER, PHASES
from tidelog.metrics import catalog
from tidelog.metrics.latency import Latencies, added
from tidelog.metrics.registry import Registry, Sample, Summary
from tidelog.protocol.api_keys import API_FACTS, ApiKey
from tidelog.server.disk import DiskFileSystem

if TYPE_CHECKING:
    from tidelog.model.ports import FileSystem
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.serving.listener import Listener

_FETCH = API_FACTS[ApiKey.FETCH].name


def watch_requests(registry: Registry, runtime: LoopRuntime, listeners: Callable[[], list[Listener]]) -> None:
    """Metrics of the requests of all listeners."""
    registry.watch(catalog.REQUESTS, lambda: _counts(listeners()))
    registry.watch_summaries(catalog.REQUEST_TIMES, lambda: _times(listeners()))
    registry.watch_group((catalog.PURGATORY_WAITING, catalog.PURGATORY_SIZE), lambda: _parked(runtime))


def watch_syncs(registry: Registry, fs: FileSystem) -> None:
    """Metrics of the syncs of log segments. A simulated disk has none."""
    times = fs.pool.sync_times if isinstance(fs, DiskFileSystem) else None
    registry.watch_summaries([catalog.FLUSH_TIME], lambda: [[] if times is None else [Summary((), *times.look())]])


def _counts(listeners: Iterable[Listener]) -> list[Sample]:
    counts: Counter[tuple[str, ...]] = Counter()
    for listener in listeners:
        for (key, version), count in listener.requests.items():
            counts[API_FACTS[key].name, str(version)] += count
    return list(counts.items())


def _times(listeners: Iterable[Listener]) -> Sequence[list[Summary]]:
    """A list for each phase. Fetch is all of a consumer's and a follower's."""
    minute = 0
    names: dict[str, list[tuple[Latencies, ...]]] = {}
    for listener in listeners:
        minute = listener.times.minute()
        for name, latencies in listener.times.by_name.items():
            names.setdefault(name, []).append(latencies)
            if name in (FETCH_CONSUMER, FETCH_FOLLOWER):
                names.setdefault(_FETCH, []).append(latencies)
    return [
        [_summary(name, [latencies[phase] for latencies in found], minute) for name, found in names.items()]
        for phase in range(len(PHASES))
    ]


def _summary(name: str, found: Sequence[Latencies], minute: int) -> Summary:
    recent = added(each.recent(minute) for each in found)
    return Summary((name,), recent, sum(each.count for each in found), sum(each.sum_ns for each in found))


def _parked(runtime: LoopRuntime) -> list[list[Sample]]:
    census = runtime.purgatory.census().items()
    return [[((name,), counts[at]) for name, counts in census] for at in (0, 1)]
