"""Faults that are given ahead."""

import errno

import pytest

from tidelog.testing.simulation.disk_faults import UNLIMITED, DiskFaults


def refusals(faults: DiskFaults, kind: str, path: str, times: int) -> list[int | None]:
    found: list[int | None] = []
    for _ in range(times):
        try:
            faults.check(kind, path)
            found.append(None)
        except OSError as failure:
            found.append(failure.errno)
    return found


def test_the_nth_operation_and_those_after_it_fail() -> None:
    faults = DiskFaults()
    faults.fail("sync", 2, errno.EIO, path_part="/a", times=2)
    assert refusals(faults, "write", "/a", 3) == refusals(faults, "sync", "/b", 3) == [None] * 3
    assert refusals(faults, "sync", "/a/f", 5) == [None, errno.EIO, errno.EIO, None, None]


def test_room_is_used_up_and_then_nothing_is_created() -> None:
    faults = DiskFaults()
    assert (faults.is_full, faults.planned, faults.room_at("/a/f")) == (False, False, UNLIMITED)
    faults.fill("/a", 5)
    faults.use_room("/b/f", 5)
    faults.check("create", "/a/f")
    faults.use_room("/a/f", 5)
    assert (faults.is_full, faults.room_at("/a/f"), faults.room_at("/b/f")) == (True, 0, UNLIMITED)
    assert faults.planned
    assert refusals(faults, "create", "/a/g", 1) == refusals(faults, "mkdir", "/a/d", 1) == [errno.ENOSPC]
    assert refusals(faults, "create", "/b/g", 1) == refusals(faults, "write", "/a/f", 1) == [None]


def test_a_stop_ends_failures_and_leaves_the_disk_full() -> None:
    faults = DiskFaults()
    faults.fail("open", 1, errno.EIO)
    faults.fill("/a", 0)
    after = faults.after_stop()
    assert refusals(after, "open", "/a", 1) == [None]
    faults.heal()
    assert (after.room_at("/a"), faults.room_at("/a")) == (0, UNLIMITED)
    faults.check("open", "/a")
    with pytest.raises(OSError, match="space"):
        after.check("create", "/a/f")
