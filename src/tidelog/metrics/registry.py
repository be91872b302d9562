"""Counters and gauges: plain objects on the hot path, callbacks for values that exist anyway.

A counter is one attribute (``requests.value += 1``); there is no lock, since only the loop writes. Values that an object has
anyway (offsets, sizes, states) are not copied: ``watch`` names a function that is called at each scrape. ``collect`` returns a
snapshot of plain tuples, which a thread may turn into text.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from tidelog.metrics.catalog import Kind, Metric

log = logging.getLogger(__name__)

Sample = tuple[tuple[str, ...], float]
"""Label values in the order of the metric's labels, and the value."""

MAX_SERIES: Final = 50_000
"""Series of one metric in one answer; labels come from topics that anybody may create."""


class Counter:
    """A number that only grows; add to ``value``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Gauge:
    """A number that goes up and down; set ``value``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Histogram:
    """How often a value fell at or below each bound, how many there were and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        assert bounds == tuple(sorted(bounds)), "bounds must rise"
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum: float = 0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)


class Summary(NamedTuple):
    """One series of a summary. Its quantiles are computed when it is rendered, in a thread."""

    labels: tuple[str, ...]
    recent: Mapping[int, int]
    """Counts by bucket, as of ``Latencies.recent``, in ns."""
    total: int
    """How many values there were, over all time."""
    sum_ns: int


class Family:
    """All series of one metric at one moment. ``histograms`` or ``summaries`` instead of ``samples`` for these kinds."""

    __slots__ = ("histograms", "metric", "samples", "summaries")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.samples: list[Sample] = []
        self.histograms: list[tuple[tuple[str, ...], list[tuple[str, float]], float]] = []
        self.summaries: list[Summary] = []


class Registry:
    """The metrics of one node."""

    def __init__(self) -> None:
        self._series: dict[Metric, dict[tuple[str, ...], Counter | Gauge | Histogram]] = {}
        self._watched: dict[Metric, Callable[[], float | Iterable[Sample]]] = {}
        self._summaries: list[tuple[tuple[Metric, ...], Callable[[], Sequence[list[Summary]]]]] = []
        self._groups: list[tuple[tuple[Metric, ...], Callable[[], Sequence[Iterable[Sample]]]]] = []
        self._reported: set[str] = set()

    def counter(self, metric: Metric, *labels: str) -> Counter:
        """The counter of these label values; made at the first call, the same object ever after."""
        assert metric.kind is Kind.COUNTER, metric.name
        found = self._of(metric).setdefault(_checked(metric, labels), Counter())
        assert isinstance(found, Counter)
        return found

    def gauge(self, metric: Metric, *labels: str) -> Gauge:
        """The gauge of these label values."""
        assert metric.kind is Kind.GAUGE, metric.name
        found = self._of(metric).setdefault(_checked(metric, labels), Gauge())
        assert isinstance(found, Gauge)
        return found

    def histogram(self, metric: Metric, *labels: str) -> Histogram:
        """The histogram of these label values."""
        assert metric.kind is Kind.HISTOGRAM, metric.name
        found = self._of(metric).setdefault(_checked(metric, labels), Histogram(metric.bounds))
        assert isinstance(found, Histogram)
        return found

    def watch(self, metric: Metric, read: Callable[[], float | Iterable[Sample]]) -> None:
        """Reads ``read`` at each collection: a number for a metric without labels, else its samples."""
        self._assert_free(metric)
        self._watched[metric] = read

    def watch_group(self, metrics: Sequence[Metric], read: Callable[[], Sequence[Iterable[Sample]]]) -> None:
        """As ``watch``, for metrics that are read in one pass over the same objects: ``read`` returns the samples of each."""
        for metric in metrics:
            self._assert_free(metric)
        self._groups.append((tuple(metrics), read))

    def watch_summaries(self, metrics: Sequence[Metric], read: Callable[[], Sequence[list[Summary]]]) -> None:
        """As ``watch_group``, for summaries."""
        for metric in metrics:
            assert metric.kind is Kind.SUMMARY, metric.name
            assert metric not in self.metrics(), f"{metric.name} has a source already"
        self._summaries.append((tuple(metrics), read))

    def metrics(self) -> list[Metric]:
        """The metrics that have a source."""
        groups = (metrics for metrics, _ in (*self._groups, *self._summaries))
        return [*self._series, *self._watched, *(metric for metrics in groups for metric in metrics)]

    def collect(self) -> list[Family]:
        """All values now. A callback that fails loses its metrics for this time, and is reported once."""
        families = [self._family(metric, series) for metric, series in self._series.items()]
        for metric, read in self._watched.items():
            try:
                families.append(_watched_family(metric, read()))
            except Exception as error:  # one failing source must not hide the others
                self._report(metric, error)
        for metrics, read_all in self._groups:
            try:
                families += [_watched_family(metric, samples) for metric, samples in zip(metrics, read_all(), strict=True)]
            except Exception as error:  # as above
                self._report(metrics[0], error)
        for metrics, read_summaries in self._summaries:
            try:
                families += [_summaries(metric, found) for metric, found in zip(metrics, read_summaries(), strict=True)]
            except Exception as error:  # as above
                self._report(metrics[0], error)
        return families

    def _report(self, metric: Metric, error: Exception) -> None:
        if metric.name not in self._reported:
            self._reported.add(metric.name)
            log.warning("metric %s cannot be read: %r", metric.name, error)

    def _assert_free(self, metric: Metric) -> None:
        assert metric not in self.metrics(), f"{metric.name} has a source already"
        assert metric.kind not in (Kind.HISTOGRAM, Kind.SUMMARY), f"{metric.name}: a {metric.kind} is not watched so"

    def _of(self, metric: Metric) -> dict[tuple[str, ...], Counter | Gauge | Histogram]:
        assert metric in self._series or metric not in self.metrics(), f"{metric.name} has a source already"
        series = self._series.setdefault(metric, {})
        assert len(series) < MAX_SERIES, f"{metric.name} has more than {MAX_SERIES} series"
        return series

    def _family(self, metric: Metric, series: Mapping[tuple[str, ...], Counter | Gauge | Histogram]) -> Family:
        family = Family(metric)
        for labels, each in series.items():
            if isinstance(each, Histogram):
                family.histograms.append((labels, _cumulated(each), each.sum))
            else:
                family.samples.append((labels, each.value))
        return family


def _checked(metric: Metric, labels: tuple[str, ...]) -> tuple[str, ...]:
    assert len(labels) == len(metric.labels), f"{metric.name} has the labels {metric.labels}"
    return labels


def _watched_family(metric: Metric, answer: float | Iterable[Sample]) -> Family:
    family = Family(metric)
    if isinstance(answer, int | float):
        family.samples.append(((), answer))
        return family
    for sample in answer:
        if len(family.samples) == MAX_SERIES:
            break
        family.samples.append(sample)
    return family


def _summaries(metric: Metric, found: list[Summary]) -> Family:
    family = Family(metric)
    family.summaries = found[:MAX_SERIES]
    return family


def _cumulated(histogram: Histogram) -> list[tuple[str, float]]:
    """Prometheus's buckets: how many lay at or below each bound."""
    total = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets
