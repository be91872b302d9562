"""Counting, watching, and what a look at it gives."""

from __future__ import annotations

import logging

import pytest

from tidelog.metrics import registry as registry_module
from tidelog.metrics.catalog import Kind, Metric
from tidelog.metrics.registry import Family, Registry

REQUESTS = Metric("test_requests_total", Kind.COUNTER, "Requests.", ("api",))
OPEN = Metric("test_open", Kind.GAUGE, "Open.")
SIZE = Metric("test_size", Kind.GAUGE, "Size.", ("topic", "partition"))
TIME = Metric("test_time", Kind.HISTOGRAM, "Time.", ("api",), bounds=(1, 5, 10))


def by_name(families: list[Family]) -> dict[str, Family]:
    return {family.metric.name: family for family in families}


def test_a_counter_is_one_object_per_label_value() -> None:
    registry = Registry()
    registry.counter(REQUESTS, "Fetch").value += 2
    registry.counter(REQUESTS, "Fetch").value += 1
    registry.counter(REQUESTS, "Produce").value += 1
    assert by_name(registry.collect())["test_requests_total"].samples == [(("Fetch",), 3), (("Produce",), 1)]


def test_a_gauge_shows_what_was_set_last() -> None:
    registry = Registry()
    registry.gauge(OPEN).value = 7
    registry.gauge(OPEN).value = 3
    assert by_name(registry.collect())["test_open"].samples == [((), 3)]


def test_a_histogram_counts_what_lies_at_or_below_each_bound() -> None:
    registry = Registry()
    histogram = registry.histogram(TIME, "Fetch")
    for value in (0.5, 1, 3, 10, 99):
        histogram.observe(value)
    ((labels, buckets, total),) = by_name(registry.collect())["test_time"].histograms
    assert labels == ("Fetch",)
    assert buckets == [("1", 2), ("5", 3), ("10", 4), ("+Inf", 5)]
    assert (total, histogram.count) == (113.5, 5)


def test_what_is_watched_is_asked_at_each_look() -> None:
    registry = Registry()
    values = [1, 2]
    registry.watch(OPEN, lambda: values.pop(0))
    registry.watch(SIZE, lambda: [(("t", "0"), 5)])
    assert by_name(registry.collect())["test_open"].samples == [((), 1)]
    families = by_name(registry.collect())
    assert families["test_open"].samples == [((), 2)]
    assert families["test_size"].samples == [(("t", "0"), 5)]


def test_a_group_is_asked_once_for_all_its_metrics() -> None:
    registry = Registry()
    looks: list[int] = []

    def read() -> list[list[tuple[tuple[str, ...], float]]]:
        looks.append(1)
        return [[((), 1)], [(("t", "0"), 2)]]

    registry.watch_group([OPEN, SIZE], read)
    families = by_name(registry.collect())
    assert (families["test_open"].samples, families["test_size"].samples) == ([((), 1)], [(("t", "0"), 2)])
    assert len(looks) == 1
    assert registry.metrics() == [OPEN, SIZE]


def test_a_source_that_fails_hides_no_other_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()

    def fails() -> float:
        raise OSError("gone")

    registry.watch(OPEN, fails)
    registry.watch_group([SIZE], lambda: [fails()])  # type: ignore[list-item]
    registry.counter(REQUESTS, "Fetch")
    with caplog.at_level(logging.WARNING):
        assert list(by_name(registry.collect())) == ["test_requests_total"]
        registry.collect()
    assert [record.getMessage() for record in caplog.records] == [
        "metric test_open cannot be read: OSError('gone')",
        "metric test_size cannot be read: OSError('gone')",
    ]


def test_one_metric_has_one_source_of_its_kind() -> None:
    registry = Registry()
    registry.watch(OPEN, lambda: 1)
    with pytest.raises(AssertionError, match="has a source already"):
        registry.gauge(OPEN)
    with pytest.raises(AssertionError, match="has a source already"):
        registry.watch_group([OPEN], lambda: [[]])
    with pytest.raises(AssertionError, match="has the labels"):
        registry.counter(REQUESTS)
    with pytest.raises(AssertionError, match="not watched"):
        registry.watch(TIME, lambda: 1)


def test_the_series_of_a_metric_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_SERIES", 3)
    registry = Registry()
    registry.watch(SIZE, lambda: [((str(i), "0"), i) for i in range(10)])
    assert len(by_name(registry.collect())["test_size"].samples) == 3
