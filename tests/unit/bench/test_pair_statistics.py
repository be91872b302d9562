"""The interval of paired ratios, and the verdict on it."""

from __future__ import annotations

import itertools
import statistics

import pytest

from bench.pair.statistics import Interval, Outcome, coverage, interval, outcome, paired_ratios


def test_ratios_are_taken_round_by_round() -> None:
    assert paired_ratios([2.0, 4.0], [3.0, 2.0]) == [1.5, 0.5]
    with pytest.raises(ValueError, match="2 samples of the old side, 1 of the new"):
        paired_ratios([2.0, 4.0], [3.0])


def test_the_coverage_is_that_of_coin_tosses_counted_one_by_one() -> None:
    for rounds, rank in itertools.product((5, 7, 9), (1, 2, 3)):
        tosses = [sum(each) for each in itertools.product((0, 1), repeat=rounds)]
        inside = sum(rank <= below <= rounds - rank for below in tosses)
        assert coverage(rounds, rank) == pytest.approx(inside / len(tosses))


@pytest.mark.parametrize(("rounds", "rank"), [(1, 1), (5, 1), (7, 1), (8, 1), (9, 2), (12, 3), (15, 4)])
def test_the_interval_is_the_narrowest_that_covers_95_percent(rounds: int, rank: int) -> None:
    found = interval([float(each) for each in reversed(range(rounds))])
    assert (found.low, found.high) == (rank - 1, rounds - rank)
    assert found.median == statistics.median(range(rounds))
    assert found.coverage == coverage(rounds, rank)


def test_few_rounds_say_how_little_their_range_covers() -> None:
    assert interval([1.0, 1.1, 1.2]).coverage == pytest.approx(0.75)
    with pytest.raises(ValueError, match="no ratios"):
        interval([])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.9, 1.03, Outcome.PASS), (1.031, 1.2, Outcome.FAIL), (1.03, 1.031, Outcome.UNDECIDED), (0.99, 1.04, Outcome.UNDECIDED)],
)
def test_the_whole_interval_decides(low: float, high: float, expected: Outcome) -> None:
    assert outcome(Interval((low + high) / 2, low, high, 0.96)) is expected
