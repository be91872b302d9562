"""The lane of plain Produces does what its twin in Python does: answers, files, state, metrics, quotas, audit."""

from __future__ import annotations

import os
import random
import shutil
from typing import Any

import pytest

from tests.property.produce_twins import FRAMES_PER_SEED, Frames, Side, compare
from tests.unit.replication.world import MemoryFile

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


def test_a_view_of_records_that_a_file_keeps_keeps_the_request_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(4, lane())
    kept: list[memoryview] = []
    write = MemoryFile.write

    def keeping(self: MemoryFile, position: int, data: Any) -> int:
        kept.append(data)
        return write(self, position, data)

    monkeypatch.setattr(MemoryFile, "write", keeping)
    frames = Frames(random.Random(1), side)
    while not side.taken:
        kept.clear()
        side.send(frames.frame())
    assert kept and all(each.obj is not None for each in kept)
