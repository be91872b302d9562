"""The lane of plain Produces does what its twin in Python does: answers, files, state, metrics, quotas, audit."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from tests.property.produce_twins import FRAMES_PER_SEED, compare

SEEDS = 400 if os.environ.get("TIDELOG_LONG") else 12
WANTED = shutil.which(os.environ.get("CC", "cc")) is not None and os.environ.get("TIDELOG_PURE") != "1"


def lane() -> Any:
    if not WANTED:
        pytest.skip("without a compiler, or TIDELOG_PURE=1")
    from tidelog.broker._produce_lane import produce_lane

    return produce_lane


def test_lane_and_twin_do_the_same_with_whole_and_broken_requests() -> None:
    make = lane()
    taken = sum(compare(seed, make) for seed in range(SEEDS))
    assert taken > SEEDS * FRAMES_PER_SEED * 0.25, "too few requests for the lane: the comparison says little"
