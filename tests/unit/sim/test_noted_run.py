"""A run of many seeds goes on where it was stopped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from sim.noted_run import CHUNK, run_all


def test_a_run_that_was_stopped_goes_on_behind_its_note(tmp_path: Path) -> None:
    note, played = tmp_path / "folder" / "note.json", list[int]()

    def run_seed(seed: int) -> SimpleNamespace:
        if len(played) == CHUNK + 3:
            raise KeyboardInterrupt
        played.append(seed)
        return SimpleNamespace(counts=Counter(seeds=1))

    with pytest.raises(KeyboardInterrupt):
        run_all(run_seed, 5, 2 * CHUNK, note)
    played.clear()
    assert run_all(run_seed, 5, 2 * CHUNK, note) == (2 * CHUNK, {"seeds": 2 * CHUNK})
    assert played == list(range(5 + CHUNK, 5 + 2 * CHUNK))
