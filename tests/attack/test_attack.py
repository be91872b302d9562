"""A small share of ``make attack``: every run changes the same handshakes, because seeds are fixed."""

from __future__ import annotations

import random

import pytest

from tests.attack import tls_exchanges
from tests.attack.timing import rank_test


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_tls_handshake_is_never_complete_and_its_end_is_explained(seed: int) -> None:
    ended = tls_exchanges.attack(seed, 700)
    assert ended["failed"] > 250
    assert ended["waiting"] > 5


def test_the_rank_test_sees_a_difference_of_a_tenth_of_the_spread_and_none_where_there_is_none() -> None:
    rng = random.Random(1)
    one, two, later = ([rng.gauss(middle, 1) for _ in range(20_000)] for middle in (0.0, 0.0, 0.1))
    assert rank_test(one, two) > 0.01
    assert rank_test(one, later) < 1e-10
    assert rank_test([1.0, 2.0] * 50, [1.0, 2.0] * 50) == 1.0
    # U is 0; its mean is 4.5 and its variance 3 * 3 * 7 / 12.
    assert rank_test([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(0.0495, abs=1e-4)
