"""The even clock while the wall clock is set."""

from __future__ import annotations

import logging

import pytest

from tidelog.server.even_clock import EvenClock

HOUR_MS = 3_600_000


class Clocks:
    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000
        self.passed_ms = 5_000
        self.now_ms = lambda: self.wall_ms
        self.even = EvenClock(self)

    def steady_ms(self) -> int:
        return self.passed_ms

    def pass_ms(self, ms: int) -> int:
        self.wall_ms += ms
        self.passed_ms += ms
        return self.even.now_ms()


def test_it_is_the_wall_clock_as_long_as_nobody_sets_that() -> None:
    clocks = Clocks()
    assert clocks.even.now_ms() == clocks.wall_ms
    for _ in range(1000):
        assert clocks.pass_ms(1) == clocks.wall_ms


@pytest.mark.parametrize("jump_ms", [3 * HOUR_MS, -3 * HOUR_MS])
def test_a_clock_that_is_set_by_hours_moves_it_by_a_tenth_of_what_passes(jump_ms: int) -> None:
    clocks = Clocks()
    before = clocks.even.now_ms()
    clocks.wall_ms += jump_ms
    assert clocks.even.now_ms() == before
    passed = clocks.pass_ms(10_000) - before
    assert passed == 10_000 + (1000 if jump_ms > 0 else -1000)


def test_it_comes_to_the_wall_clock_in_the_end_however_often_it_is_asked() -> None:
    clocks = Clocks()
    clocks.even.now_ms()
    clocks.wall_ms += 50
    told = [clocks.pass_ms(1) for _ in range(500)]
    assert told == sorted(told)
    assert clocks.even.now_ms() == clocks.wall_ms
    clocks.wall_ms -= 50
    told = [clocks.pass_ms(1) for _ in range(501)]
    assert told == sorted(told)
    assert clocks.even.now_ms() == clocks.wall_ms


def test_who_runs_the_machine_is_told_of_a_jump_once(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clocks.even.now_ms()
    clocks.wall_ms += HOUR_MS
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            clocks.pass_ms(1000)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["the machine's clock was set forward by 3600 s"]
