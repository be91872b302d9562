"""librdkafka's statistics as ``--print-metrics`` prints them."""

from __future__ import annotations

import json

import pytest

from tidelog.cli.tools.perf_metrics import INTERVAL_MS, Metrics

STATISTICS = {
    "name": "rdkafka#producer-1",
    "client_id": "perf",
    "type": "producer",
    "txmsgs": 5,
    "ts": 1.5,
    "brokers": {
        "a:1/1": {"name": "a:1/1", "nodeid": 1, "tx": 7, "rtt": {"min": 1, "avg": 2, "p99": 3}},
        "a:1/bootstrap": {"nodeid": -1, "tx": 9},
    },
    "topics": {"t": {"topic": "t", "age": 4, "batchsize": {"avg": 100}, "partitions": {"0": {"txmsgs": 5}}}},
}


def test_numbers_come_by_name_in_kafkas_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics("producer")
    metrics.received(json.dumps(STATISTICS))
    metrics.print()
    _, title, *lines = capsys.readouterr().out.splitlines()
    assert title.split() == ["Metric", "Name", "Value"]
    found = {line.split(" : ")[0].rstrip(): line.split(" : ")[1] for line in lines}
    assert found == {
        "producer-metrics:ts:{client-id=perf}": "1.500",
        "producer-metrics:txmsgs:{client-id=perf}": "5",
        "producer-node-metrics:nodeid:{client-id=perf, node-id=node-1}": "1",
        "producer-node-metrics:rtt-avg:{client-id=perf, node-id=node-1}": "2",
        "producer-node-metrics:rtt-min:{client-id=perf, node-id=node-1}": "1",
        "producer-node-metrics:rtt-p99:{client-id=perf, node-id=node-1}": "3",
        "producer-node-metrics:tx:{client-id=perf, node-id=node-1}": "7",
        "producer-topic-metrics:age:{client-id=perf, topic=t}": "4",
        "producer-topic-metrics:batchsize-avg:{client-id=perf, topic=t}": "100",
    }
    assert [*found] == sorted(found)
    assert len({line.index(" : ") for line in lines}) == 1


def test_without_statistics_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Metrics("consumer").print()
    assert capsys.readouterr().out == ""


def test_a_run_waits_for_statistics_that_are_newer_than_its_end_and_not_for_ever() -> None:
    metrics = Metrics("producer")
    metrics.received("{}")
    polled: list[float] = []

    def poll(seconds: float) -> None:
        polled.append(seconds)
        if len(polled) == 3:
            metrics.received("{}")

    metrics.settle(poll, now=lambda: 0.0)
    assert len(polled) == 3
    clock = iter(range(100))
    metrics.settle(polled.append, now=lambda: float(next(clock)))
    assert len(polled) < 10
    assert metrics.settings["statistics.interval.ms"] == str(INTERVAL_MS)
