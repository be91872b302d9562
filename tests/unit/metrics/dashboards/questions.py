"""What a question in PromQL may name."""

from __future__ import annotations

import re

from tidelog.metrics.catalog import CATALOG, Kind, Metric

METRICS = {each.name: each for each in CATALOG}
OF_PROMETHEUS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"}
SELECTOR = re.compile(r"\b([a-z][a-z0-9_]*)\{([^}]*)\}")


def labels_of(metric: Metric) -> set[str]:
    return {*metric.labels, "job", "instance", *(["quantile"] if metric.kind is Kind.SUMMARY else [])}


def check(expr: str, legend: str = "") -> None:
    """``expr`` names metrics and labels that a node serves, every metric of one job, and only counters have rates."""
    known = set()
    selectors = SELECTOR.findall(expr)
    assert selectors
    for metric, matchers in selectors:
        assert metric in METRICS or metric in OF_PROMETHEUS
        here = labels_of(METRICS[metric]) if metric in METRICS else {"job", "instance"}
        asked = set(re.findall(r"(\w+)=", matchers))
        assert "job" in asked
        assert asked <= here
        known |= here
    grouped = {each.strip() for group in re.findall(r"(?:by|on) \(([^)]*)\)", expr) for each in group.split(",")}
    assert grouped <= known
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (grouped or known)
    for metric in re.findall(r"\b(?:rate|increase)\(([a-z0-9_]+)", expr):
        # A group's offset and a node's disk bytes only grow, although other dashboards know them as gauges.
        assert metric.endswith(("_total", "_bytes", "consumergroup_current_offset")), metric
