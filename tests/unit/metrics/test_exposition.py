"""The text that Prometheus reads."""

from __future__ import annotations

import subprocess
import sys

from prometheus_client.parser import text_string_to_metric_families

from tidelog.metrics.catalog import Kind, Metric
from tidelog.metrics.exposition import render
from tidelog.metrics.registry import Registry

REQUESTS = Metric("test_requests_total", Kind.COUNTER, "Requests.", ("api",))
SIZE = Metric("test_size", Kind.GAUGE, "Size.", ("topic", "partition"))
TIME = Metric("test_time", Kind.HISTOGRAM, "Time.", bounds=(1, 5))


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


def test_the_process_is_told_of_when_asked() -> None:
    assert b"process_cpu_seconds_total" not in render([], process=False)
    if sys.platform == "linux":
        assert b"process_open_fds " in render([])


def test_the_prometheus_library_is_not_imported_before_it_is_needed() -> None:
    script = "import sys, tidelog.metrics.exposition; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
