"""How many cores and how much memory this process may use: the machine's, or its control group's where that allows less."""

from __future__ import annotations

import os
from typing import Final

_GROUP: Final = "/sys/fs/cgroup"
_MEMORY: Final = "/proc/meminfo"


def cores(group: str = _GROUP) -> int:
    """At least 1. A part of a core does not count: a process on it would wait."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(group)
    return max(1, usable if quota is None else min(usable, int(quota)))


def free_memory(group: str = _GROUP, meminfo: str = _MEMORY) -> int | None:
    """Bytes that may still be taken; None where the system does not say. Of a group's limit all counts as free: most of what is
    taken there is page cache."""
    limits = []
    for line in (_text(meminfo) or "").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            limits.append(int(value.split()[0]) << 10)
    most = _number(f"{group}/memory.max")
    if most is not None:
        limits.append(most)
    return min(limits, default=None)


def _quota(group: str) -> float | None:
    """CPU seconds a second that the group may use; None without a limit."""
    words = (_text(f"{group}/cpu.max") or "").split()
    if len(words) == 2 and words[0].isdecimal():
        return int(words[0]) / int(words[1])
    quota, period = _number(f"{group}/cpu/cpu.cfs_quota_us"), _number(f"{group}/cpu/cpu.cfs_period_us")
    return quota / period if quota is not None and period else None


def _number(path: str) -> int | None:
    text = (_text(path) or "").strip()
    return int(text) if text.isdecimal() else None


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
