"""When a run is void."""

from __future__ import annotations

from bench.pair.voids import Noise, moved, reasons

QUIET = Noise(0.01, 0.0)


def test_a_quiet_machine_is_no_reason() -> None:
    assert list(reasons({"produce": [10.0, 11.4, 10.2]}, {"produce": [QUIET, Noise(0.05, 0.05)]})) == []


def test_the_limit_may_move_by_15_percent_and_no_more() -> None:
    assert moved([8.0, 10.0, 9.0]) == 0.25
    (reason,) = reasons({"produce": [10.0, 11.6], "fetch": [10.0, 10.0]}, {})
    assert reason == "produce: the C limit moved by 16% between rounds, more than 15%"


def test_one_sample_with_others_or_steal_is_enough() -> None:
    noise = {"produce": [QUIET, Noise(0.06, 0.0)], "fetch": [Noise(0.0, 0.2), QUIET]}
    assert list(reasons({}, noise)) == [
        "produce: other processes had 6% of the CPU in a sample, more than 5%",
        "fetch: the hypervisor took 20% of the CPU in a sample, more than 5%",
    ]
