"""Quantiles beside those of sorted samples."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from tidelog.metrics.latency import QUANTILES, RELATIVE_ERROR, Latencies, added, bucket_of, middle_of, quantiles

durations = st.integers(0, 2**45) | st.integers(0, 300) | st.sampled_from([63, 64, 65, 127, 128, 4095, 4096, 10**6, 10**9])


@given(st.lists(st.tuples(durations, st.sampled_from([1, 1, 16])), min_size=1, max_size=300))
def test_a_quantile_is_within_a_64th_of_that_of_the_sorted_samples(samples: list[tuple[int, int]]) -> None:
    latencies = Latencies()
    for value, weight in samples:
        latencies.record(value, 7, weight)
    ordered = sorted(value for value, weight in samples for _ in range(weight))
    exact = [ordered[ceil(share * len(ordered)) - 1] for share in QUANTILES]
    found = quantiles(latencies.recent(7))
    assert len(found) == len(exact)
    for near, true in zip(found, exact, strict=True):
        assert abs(near - true) <= true * RELATIVE_ERROR, (near, true)
    assert (latencies.count, latencies.sum_ns) == (len(ordered), sum(ordered))


@given(durations)
def test_buckets_rise_with_their_values_and_each_holds_its_middle(value: int) -> None:
    bucket = bucket_of(value)
    assert bucket_of(value + 1) in (bucket, bucket + 1), "no bucket is left out, none overlaps"
    assert bucket_of(int(middle_of(bucket))) == bucket


def test_values_below_64_are_exact() -> None:
    assert [middle_of(bucket_of(value)) for value in range(64)] == list(range(64))


def test_quantiles_forget_what_is_older_than_two_minutes_and_counts_do_not() -> None:
    latencies = Latencies()
    latencies.record(50, 1)
    latencies.record(60, 2)
    assert latencies.recent(2) == {50: 1, 60: 1}
    assert latencies.recent(3) == {60: 1}
    latencies.record(9, 3)
    assert latencies.recent(3) == {60: 1, 9: 1}
    assert latencies.recent(9) == {}
    assert quantiles(latencies.recent(9)) == []
    assert (latencies.count, latencies.sum_ns) == (3, 119)


def test_counts_of_several_are_added() -> None:
    assert added([{1: 2, 5: 1}, {}, {5: 3}]) == {1: 2, 5: 4}
