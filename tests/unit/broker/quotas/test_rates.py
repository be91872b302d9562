"""Values computed by hand, after what Kafka's Rate and SampledStat do with the same records."""

from __future__ import annotations

import pytest

from tidelog.broker.quotas.rates import LONGEST_MS, Rate, SampledRate, Windows, throttle_ms

WINDOWS = Windows(11, 1000)


def recorded(*values: tuple[int, float]) -> SampledRate:
    rate = SampledRate()
    for now_ms, value in values:
        rate.record(value, now_ms, WINDOWS)
    return rate


def test_windows_before_the_first_use_count_as_unused() -> None:
    rate = recorded((5000, 1000))
    assert rate.measure(5000, WINDOWS) == Rate(100.0, 10_000)
    assert rate.measure(5500, WINDOWS) == Rate(1000 / 10.5, 10_500)


def test_eleven_windows_are_measured_over_the_time_that_has_passed() -> None:
    rate = recorded(*((second * 1000, 1000) for second in range(11)))
    assert rate.measure(10_000, WINDOWS) == Rate(1100.0, 10_000)
    assert rate.measure(10_500, WINDOWS) == Rate(11_000 / 10.5, 10_500)


def test_a_window_goes_when_its_last_use_is_eleven_windows_ago() -> None:
    rate = recorded((0, 1000), (900, 500))
    assert rate.total(11_899, WINDOWS) == 1500
    assert rate.total(11_900, WINDOWS) == 0
    assert rate.measure(11_900, WINDOWS) == Rate(0.0, 10_000)


def test_a_window_that_overlaps_the_oldest_moment_is_kept_as_the_twelfth() -> None:
    rate = recorded((0, 7), (999, 7), *((second * 1000, 1) for second in range(1, 12)))
    assert rate.measure(11_000, WINDOWS) == Rate(25 / 11, 11_000)
    rate.record(1, 12_000, WINDOWS)
    # Its place is taken, and the window after it is too old by now.
    assert rate.measure(12_000, WINDOWS) == Rate(1.1, 10_000)


def test_what_was_taken_back_does_not_count() -> None:
    rate = recorded((0, 100), (10, 5000), (10, -5000))
    assert rate.total(10, WINDOWS) == 100


def test_nothing_was_used_by_who_is_new() -> None:
    assert SampledRate().measure(123, WINDOWS) == Rate(0.0, 10_000)
    assert SampledRate().measure(123, Windows(1, 1000)).span_ms == 1


@pytest.mark.parametrize(
    ("rate", "bound", "expected"),
    [
        (Rate(100.0, 10_000), 100.0, 0),
        (Rate(100.0, 10_000), 50.0, 10_000),
        (Rate(110.0, 10_000), 100.0, 1000),
        (Rate(100.004, 10_000), 100.0, 0),
        (Rate(100.006, 10_000), 100.0, 1),
        (Rate(1e9, 10_000), 1.0, LONGEST_MS),
        (Rate(1.0, 10_000), 0.0, LONGEST_MS),
    ],
)
def test_the_wait_is_as_long_as_the_rate_needs_to_come_down(rate: Rate, bound: float, expected: int) -> None:
    assert throttle_ms(rate, bound) == expected
