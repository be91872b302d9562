"""Drivers that die, come back or never went away, for each store: what other sinks were seen to double or to lose.

The stories are those of apache/iceberg's issues about its sink for Kafka Connect, told with our words: a coordinator there is
a driver here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tests.unit.pipeline.lake.stores import APPLICATION, NAMES, STORES, batch, files, offsets
from tidelog.pipeline.lake.landed import starting_offsets
from tidelog.pipeline.lake.table import FileTable
from tidelog.pipeline.sinks.base import SinkError

Make = Callable[[Path], FileTable]
pytestmark = pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)


def test_a_zombie_never_moves_what_is_remembered_back(make: Make, tmp_path: Path) -> None:
    """#17551: an old coordinator wrote its old position over the newer one; from there on retention had taken records, and lost
    they were."""
    zombie, driver = make(tmp_path), make(tmp_path)
    assert zombie.commit(batch(0, 0, 5), files(zombie, 0, 5))
    assert driver.commit(batch(1, 5, 9), files(driver, 5, 9))
    assert driver.commit(batch(2, 9, 12), [])  # offsets without rows: they count too
    for old in (batch(0, 0, 5), batch(1, 5, 9)):
        assert not zombie.commit(old, files(zombie, old.ranges[0].start, old.ranges[0].end))
    with pytest.raises(SinkError):
        zombie.commit(batch(2, 9, 15), files(zombie, 9, 15))
    assert make(tmp_path).commit(batch(3, 12, 13), [])
    progress = make(tmp_path).progress(APPLICATION)
    assert (progress.batch_id, starting_offsets(progress)) == (3, '{"t": {"0": 13}}')
    assert offsets(driver) == list(range(9))


def test_files_of_one_attempt_are_not_committed_again_under_the_next_number(make: Make, tmp_path: Path) -> None:
    """#17340: after a restart in mid-cycle the same data files were in two commits; 111,927 rows were doubled."""
    driver = make(tmp_path)
    written = files(driver, 0, 5)
    assert driver.commit(batch(0, 0, 5), written)
    restarted = make(tmp_path)
    with pytest.raises(SinkError, match="startingOffsets="):
        restarted.commit(batch(1, 0, 8), [*written, *files(restarted, 5, 8)])
    assert offsets(restarted) == list(range(5))


def test_a_driver_that_died_after_its_commit_and_before_it_said_so_lands_once(make: Make, tmp_path: Path) -> None:
    """#16282: the snapshot was there, the position of who made it was not moved yet; its successor registered the file again."""
    dead, successor = make(tmp_path), make(tmp_path)
    assert dead.commit(batch(0, 0, 5), files(dead, 0, 5))
    assert not successor.commit(batch(0, 0, 5), files(successor, 0, 5))
    assert successor.commit(batch(1, 5, 6), files(successor, 5, 6))
    assert offsets(successor) == list(range(6))


def test_two_drivers_at_once_land_each_batch_once(make: Make, tmp_path: Path) -> None:
    """#17637: a rebalance left two coordinators alive, and both committed."""
    drivers = [make(tmp_path), make(tmp_path)]
    drivers[0].prepare(NAMES)
    landed: list[list[bool]] = [[], []]
    problems: list[BaseException] = []
    together = threading.Barrier(2)

    def drive(which: int) -> None:
        try:
            for number in range(6):
                written = files(drivers[which], 3 * number, 3 * number + 3)
                together.wait(60)
                landed[which].append(drivers[which].commit(batch(number, 3 * number, 3 * number + 3), written))
        except BaseException as problem:
            problems.append(problem)
            together.abort()

    threads = [threading.Thread(target=drive, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems
    assert [a + b for a, b in zip(*landed, strict=True)] == [1] * 6
    assert offsets(make(tmp_path)) == list(range(18))
