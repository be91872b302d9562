from __future__ import annotations

from pathlib import Path

from tidelog.server.disk import DiskFileSystem
from tidelog.server.sync_times import SyncTimes


def test_syncs_are_counted_with_their_times() -> None:
    times = SyncTimes()
    assert times.look() == ({}, 0, 0)
    for _ in range(3):
        times.ended(times.began())
    counts, total, sum_ns = times.look()
    assert (sum(counts.values()), total) == (3, 3)
    assert sum_ns >= 0


def test_a_disk_times_the_syncs_of_log_segments_only(tmp_path: Path) -> None:
    fs = DiskFileSystem()
    for name in ("0.log", "0.index", "recovery-point-offset-checkpoint"):
        file = fs.open(f"{tmp_path}/{name}", create=True)
        file.write(0, b"x")
        file.sync()
    assert fs.pool.sync_times.look()[1] == 1
