"""Metrics as Prometheus reads them.

``prometheus_client`` is imported at the first call, which takes tens of milliseconds, and writing thousands of series takes
as many: run ``render`` in a thread, on what ``Registry.collect`` returned on the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tidelog.metrics.catalog import Kind
from tidelog.metrics.latency import quantiles
from tidelog.metrics.registry import Family

if TYPE_CHECKING:
    from prometheus_client.core import Metric as PrometheusMetric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


SHARES: Final = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""``QUANTILES`` as labels, in the spelling of the JMX exporter's rules for Kafka."""
NS_IN_MS: Final = 1_000_000


class _Snapshot:
    """A collector over values that have been taken already."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[PrometheusMetric]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
            SummaryMetricFamily,
        )

        for family in self._families:
            metric = family.metric
            if metric.kind is Kind.HISTOGRAM:
                histogram = HistogramMetricFamily(metric.name, metric.doc, labels=metric.labels)
                for labels, buckets, total in family.histograms:
                    histogram.add_metric(labels, buckets=buckets, sum_value=total)
                yield histogram
                continue
            if metric.kind is Kind.SUMMARY:
                summary = SummaryMetricFamily(metric.name, metric.doc, labels=metric.labels)
                for each in family.summaries:
                    summary.add_metric(each.labels, count_value=each.total, sum_value=each.sum_ns / NS_IN_MS)
                    named = dict(zip(metric.labels, each.labels, strict=True))
                    for share, value in zip(SHARES, quantiles(each.recent), strict=False):
                        summary.add_sample(metric.name, {**named, "quantile": share}, value / NS_IN_MS)
                yield summary
                continue
            make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            plain = make(metric.name, metric.doc, labels=metric.labels)
            for labels, value in family.samples:
                plain.add_metric(labels, value)
            yield plain


def render(families: Sequence[Family], *, process: bool = True) -> bytes:
    """The text format, version 0.0.4. ``process`` adds what the operating system knows (``process_open_fds`` and so on)."""
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(families))
    if process:
        ProcessCollector(registry=registry)
    return generate_latest(registry)
