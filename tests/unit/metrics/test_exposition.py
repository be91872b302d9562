"""The text that Prometheus reads."""

from __future__ import annotations

import subprocess
import sys

from prometheus_client.parser import text_string_to_metric_families

from tidelog.metrics.catalog import Kind, Metric
from tidelog.metrics.exposition import render
from tidelog.metrics.latency import bucket_of
from tidelog.metrics.registry import Registry, Summary

REQUESTS = Metric("test_requests_total", Kind.COUNTER, "Requests.", ("api",))
SIZE = Metric("test_size", Kind.GAUGE, "Size.", ("topic", "partition"))
TIME = Metric("test_time", Kind.HISTOGRAM, "Time.", bounds=(1, 5))
LATENCY = Metric("test_timems", Kind.SUMMARY, "Latency.", ("api",))


def test_the_text_says_what_was_collected() -> None:
    registry = Registry()
    registry.counter(REQUESTS, "Fetch").value += 3
    registry.watch(SIZE, lambda: [(('quo"te\n', "0"), 5)])
    registry.histogram(TIME).observe(3)
    text = render(registry.collect(), process=False).decode()
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples == {
        ("test_requests_total", (("api", "Fetch"),)): 3,
        ("test_size", (("partition", "0"), ("topic", 'quo"te\n'))): 5,
        ("test_time_bucket", (("le", "1"),)): 0,
        ("test_time_bucket", (("le", "5"),)): 1,
        ("test_time_bucket", (("le", "+Inf"),)): 1,
        ("test_time_count", ()): 1,
        ("test_time_sum", ()): 3,
    }
    assert "# HELP test_size Size.\n# TYPE test_size gauge\n" in text


def test_a_summary_has_quantiles_in_ms_where_there_are_values() -> None:
    registry = Registry()
    busy = {bucket_of(2_000_000): 98, bucket_of(60_000_000): 2}
    registry.watch_summaries([LATENCY], lambda: [[Summary(("Fetch",), busy, 500, 9_000_000), Summary(("Idle",), {}, 7, 0)]])
    text = render(registry.collect(), process=False).decode()
    (family,) = text_string_to_metric_families(text)
    assert family.type == "summary"
    found = {(each.name, each.labels["api"], each.labels.get("quantile")): each.value for each in family.samples}
    assert found.pop(("test_timems_count", "Fetch", None)) == 500
    assert found.pop(("test_timems_sum", "Fetch", None)) == 9
    assert found.pop(("test_timems_count", "Idle", None)) == 7
    assert found.pop(("test_timems_sum", "Idle", None)) == 0
    assert {(name, api) for name, api, _ in found} == {("test_timems", "Fetch")}, "no quantile of nothing"
    expected = {"0.50": 2, "0.75": 2, "0.95": 2, "0.98": 2, "0.99": 60, "0.999": 60}
    for (_, _, share), value in found.items():
        assert share is not None
        assert abs(value - expected.pop(share)) <= value / 64
    assert not expected


def test_the_process_is_told_of_when_asked() -> None:
    assert b"process_cpu_seconds_total" not in render([], process=False)
    if sys.platform == "linux":
        assert b"process_open_fds " in render([])


def test_the_prometheus_library_is_not_imported_before_it_is_needed() -> None:
    script = "import sys, tidelog.metrics.exposition; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
