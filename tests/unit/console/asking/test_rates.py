from __future__ import annotations

import pytest

from tidelog.console.asking.rates import MAX_SAMPLES, History, Sample, slope


def history(written: float, read: float, count: int = 20, lag: int = 1000) -> History:
    found = History()
    for second in range(count):
        committed = 10_000 + int(read * second)
        found.add(Sample(second * 5000, committed * 5, committed * 5 + lag + int((written - read) * second) * 5))
    return found


def test_rates_need_three_samples() -> None:
    assert history(1, 1, 2).rates() is None
    assert history(1, 1, 3).rates() is not None
    assert History().rates() is None


def test_a_group_that_reads_faster_catches_up() -> None:
    rates = history(10, 20).rates()
    assert rates is not None
    assert rates.read == pytest.approx(20, rel=0.05)
    assert rates.written == pytest.approx(10, rel=0.1)
    assert rates.caught_up_seconds is not None
    assert not rates.never


def test_a_group_that_reads_more_slowly_never_catches_up() -> None:
    rates = history(20, 10).rates()
    assert rates is not None
    assert (rates.caught_up_seconds, rates.never) == (None, True)


def test_a_group_without_lag_is_there() -> None:
    rates = history(10, 10, lag=0).rates()
    assert rates is not None
    assert (rates.caught_up_seconds, rates.never) == (0.0, False)


def test_samples_before_a_reset_do_not_count() -> None:
    found = history(10, 10)
    found.add(Sample(10_000_000, 5, 100))
    assert [each.committed for each in found.samples] == [5]


def test_samples_are_bounded_and_in_time() -> None:
    found = History()
    for number in range(MAX_SAMPLES + 10):
        found.add(Sample(number, number, number))
    found.add(Sample(3, MAX_SAMPLES + 10, MAX_SAMPLES + 10))
    assert len(found.samples) == MAX_SAMPLES
    assert found.samples[-1].at_ms == MAX_SAMPLES + 9


def test_one_odd_sample_does_not_change_a_slope() -> None:
    points = [(float(second), second * 10) for second in range(21)]
    points[10] = (10.0, 100_000)
    assert slope(points) == pytest.approx(10)
    assert slope([]) == 0.0
