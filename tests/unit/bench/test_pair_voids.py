"""Which rounds count, and when a run is void."""

from __future__ import annotations

from bench.pair.voids import Noise, counted, reasons

QUIET, BUSY, STOLEN = Noise(0.05, 0.05), Noise(0.06, 0.0), Noise(0.0, 0.2)


def test_all_rounds_count_on_a_quiet_machine() -> None:
    assert counted([10.0, 10.9, 10.2], [[QUIET, QUIET]] * 3) == [0, 1, 2]


def test_a_round_with_others_or_steal_in_any_sample_does_not_count() -> None:
    assert counted([10.0] * 4, [[QUIET, BUSY], [QUIET, QUIET], [STOLEN, QUIET], []]) == [1, 3]


def test_the_limits_of_the_rounds_that_count_differ_by_at_most_15_percent() -> None:
    limits = [10.0, 10.7, 10.8, 9.33, 9.31, 59.0, 10.0]
    found = counted(limits, [[QUIET]] * 7)
    assert found == [0, 1, 3, 6]
    assert max(limits[each] for each in found) / min(limits[each] for each in found) <= 1.15


def test_a_noisy_round_does_not_move_the_middle_of_the_limits() -> None:
    assert counted([10.0, 50.0, 50.0, 50.0], [[QUIET], [BUSY], [BUSY], [BUSY]]) == [0]


def test_a_row_without_a_limit_goes_by_noise_alone() -> None:
    assert counted([], [[QUIET], [BUSY], []]) == [0, 2]


def test_a_run_is_void_when_too_few_rounds_of_a_row_count() -> None:
    assert list(reasons(21, {"produce": 14, "fetch": 21})) == []
    (reason,) = reasons(21, {"produce": 13, "fetch": 14})
    assert reason.startswith("produce: only 13 of 21 rounds count; ")
    assert [each.split(":")[0] for each in reasons(9, {"produce": 6, "fetch": 7})] == ["produce"]
    assert list(reasons(2, {"produce": 2})) == []
