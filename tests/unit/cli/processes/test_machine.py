from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidelog.cli.processes.machine import cores, free_memory


@pytest.mark.parametrize(("quota", "most"), [("max 100000", 99), ("250000 100000", 2), ("50000 100000", 1), ("nonsense", 99)])
def test_a_quota_of_the_control_group_counts_in_whole_cores(tmp_path: Path, quota: str, most: int) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert cores(str(tmp_path)) == min(most, len(os.sched_getaffinity(0)))


def test_the_older_control_groups_have_two_files(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert cores(str(tmp_path)) == len(os.sched_getaffinity(0))
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("100000\n")
    assert cores(str(tmp_path)) == 1


def test_free_memory_is_what_the_machine_and_the_group_leave(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  100 kB\nMemAvailable:  64 kB\n")
    assert free_memory(str(tmp_path), str(meminfo)) == 64 << 10
    (tmp_path / "memory.max").write_text("1024\n")
    assert free_memory(str(tmp_path), str(meminfo)) == 1024
    assert free_memory(str(tmp_path / "none"), str(tmp_path / "none")) is None
