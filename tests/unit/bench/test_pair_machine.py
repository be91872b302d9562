"""What is read out of /proc."""

from __future__ import annotations

import os

import pytest

from bench.pair import machine
from bench.pair.machine import TICKS, Machine, others_share, parse_cpu, parse_stat, parse_switches, refined, steal_share

STAT = "4711 (a (b) c) S 42 4711 4711 0 -1 4194560 5521 0 0 0 {user} {system} 7 8 20 0 1 0 100 1000 100"


def test_a_name_with_brackets_and_blanks_does_not_shift_the_fields() -> None:
    assert parse_stat(STAT.format(user=250, system=50)) == (42, 250 / TICKS, 50 / TICKS)


def test_both_kinds_of_switches_count() -> None:
    assert parse_switches("Name:\tx\nvoluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t12\n") == 42


def test_busy_is_user_nice_and_system() -> None:
    assert parse_cpu("cpu  100 20 30 4000 50 6 7 80 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n") == (150 / TICKS, 80 / TICKS)


def test_others_are_what_is_busy_and_neither_ours_nor_the_kernels() -> None:
    before, after = Machine(10.0, 100.0, 5.0, 1.0), Machine(20.0, 112.0, 7.0, 1.5)
    assert others_share(before, after, own=9.0, cores=2) == pytest.approx(0.05)
    assert others_share(before, after, own=11.0, cores=2) == pytest.approx(-0.05), "a tick too few makes up for one too many"
    assert steal_share(before, after, cores=2) == pytest.approx(0.025)


def test_this_process_is_found() -> None:
    mine = machine.usage(os.getpid())
    assert mine.user + mine.system > 0
    assert machine.resident(os.getpid()) > 1 << 20


def test_ticks_are_stretched_to_what_the_scheduler_counted() -> None:
    assert refined(0.2, 0.1, 0.306) == pytest.approx((0.204, 0.102))
    assert refined(0.2, 0.1, 0.1) == (0.2, 0.1), "threads have ended: their nanoseconds are lost"
    assert refined(0.0, 0.0, 0.004) == (0.0, 0.0)
