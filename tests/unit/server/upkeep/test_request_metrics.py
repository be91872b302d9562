from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tidelog.broker.request_times import PHASES, RequestTimes
from tidelog.metrics import catalog
from tidelog.metrics.registry import Registry, Summary
from tidelog.protocol.api_keys import ApiKey
from tidelog.replication.purgatory import ParkedAppend, ParkedFetch, Purgatory
from tidelog.server.disk import DiskFileSystem
from tidelog.server.upkeep.request_metrics import watch_requests, watch_syncs


def listener(requests: dict[tuple[ApiKey, int], int], *times: tuple[str, int]) -> Any:
    found = RequestTimes(lambda: 0)
    for name, time_ns in times:
        found.record(name, 1, 0, (time_ns,) * len(PHASES))
    return SimpleNamespace(requests=requests, times=found)


def collected(listeners: list[Any], purgatory: Purgatory) -> dict[catalog.Metric, Any]:
    registry = Registry()
    watch_requests(registry, SimpleNamespace(purgatory=purgatory), lambda: listeners)  # type: ignore[arg-type]
    return {family.metric: family.summaries or family.samples for family in registry.collect()}


def test_counts_and_times_are_those_of_all_listeners() -> None:
    found = collected(
        [
            listener({(ApiKey.PRODUCE, 12): 3, (ApiKey.PRODUCE, 13): 1}, ("Produce", 10), ("FetchConsumer", 40)),
            listener({(ApiKey.PRODUCE, 12): 2}, ("Produce", 10), ("FetchFollower", 50)),
        ],
        Purgatory(),
    )
    assert dict(found[catalog.REQUESTS]) == {("Produce", "12"): 5, ("Produce", "13"): 1}
    for metric in catalog.REQUEST_TIMES:
        assert sorted(found[metric]) == [
            Summary(("Fetch",), {40: 1, 50: 1}, 2, 90),
            Summary(("FetchConsumer",), {40: 1}, 1, 40),
            Summary(("FetchFollower",), {50: 1}, 1, 50),
            Summary(("Produce",), {10: 2}, 2, 20),
        ]


def test_there_is_a_metric_for_each_phase() -> None:
    names = [metric.name.removeprefix("kafka_network_requestmetrics_") for metric in catalog.REQUEST_TIMES]
    assert names == [f"{phase.replace(' ', '')}timems" for phase in PHASES]


def test_parked_requests_are_counted_by_operation() -> None:
    purgatory = Purgatory()
    fetch, done = ParkedFetch(10, 1, committed=False), ParkedFetch(10, 1, committed=False)
    for _ in range(2):
        fetch.watch(SimpleNamespace(watchers={}), None)
    for parked in (fetch, done, ParkedAppend(10, -1)):
        purgatory.park(parked)
    done.finish()
    found = collected([], purgatory)
    assert dict(found[catalog.PURGATORY_WAITING]) == {("Produce",): 1, ("Fetch",): 1, ("DeleteRecords",): 0}
    assert dict(found[catalog.PURGATORY_SIZE]) == {("Produce",): 0, ("Fetch",): 2, ("DeleteRecords",): 0}


def test_syncs_are_told_by_a_disk_and_not_by_a_simulated_one() -> None:
    for fs, count in ((DiskFileSystem(), 1), (object(), 0)):
        registry = Registry()
        watch_syncs(registry, fs)  # type: ignore[arg-type]
        (family,) = registry.collect()
        assert len(family.summaries) == count
