"""What /proc says of processes and of the machine; Linux only. Times are seconds, memory is bytes."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
_KERNEL_THREADS = 2
"""The pid of kthreadd, parent of all kernel threads."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    user: float
    system: float
    switches: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.user + other.user, self.system + other.system, self.switches + other.switches)

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.user - other.user, self.system - other.system, self.switches - other.switches)


@dataclass(frozen=True, slots=True)
class Machine:
    """CPU seconds of all cores so far: ``busy`` in user and system mode, ``kernel`` of it in kernel threads (writeback of the
    page cache among them), ``steal`` taken by the hypervisor."""

    at: float
    busy: float
    kernel: float
    steal: float


def parse_stat(text: str) -> tuple[int, float, float]:
    """Parent, user and system seconds in ``/proc/PID/stat``."""
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), int(fields[11]) / TICKS, int(fields[12]) / TICKS


def parse_switches(text: str) -> int:
    """Voluntary and other context switches in ``/proc/PID/task/TID/status``."""
    return sum(int(line.split()[1]) for line in text.splitlines() if "voluntary_ctxt_switches:" in line)


def parse_cpu(text: str) -> tuple[float, float]:
    """Busy (user, nice, system) and stolen seconds in ``/proc/stat``."""
    fields = [int(each) for each in text.splitlines()[0].split()[1:]]
    return sum(fields[:3]) / TICKS, fields[7] / TICKS


def refined(user: float, system: float, on_cpu: float) -> tuple[float, float]:
    """User and system seconds, which come in ticks, stretched to the nanoseconds that the scheduler counted for the threads that
    are there; as they are where threads have ended, whose nanoseconds are lost."""
    total = user + system
    if total == 0 or abs(on_cpu - total) > 3 / TICKS:
        return user, system
    return user * on_cpu / total, system * on_cpu / total


def usage(pid: int) -> Usage:
    """Of one process; ended threads count for CPU, not for switches. FileNotFoundError when it is gone."""
    switches, on_cpu = 0, 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            switches += parse_switches((task / "status").read_text())
            on_cpu += int((task / "schedstat").read_text().split()[0]) / 1e9
    _, user, system = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    return Usage(*refined(user, system, on_cpu), switches)


def usage_of(pids: Iterable[int]) -> Usage:
    """Of some processes together."""
    return sum((usage(pid) for pid in pids), Usage(0, 0, 0))


def machine() -> Machine:
    """Now."""
    kernel = 0.0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent, user, system = parse_stat((folder / "stat").read_text())
                kernel += user + system if _KERNEL_THREADS in (parent, int(folder.name)) else 0
    busy, steal = parse_cpu(Path("/proc/stat").read_text())
    return Machine(time.monotonic(), busy, kernel, steal)


def others_share(before: Machine, after: Machine, own: float, cores: int) -> float:
    """The share of the machine that other processes had, where ``own`` CPU seconds were ours.

    A tick too few makes it negative, as a tick too many makes it too large: only the mean of several says something.
    """
    capacity = (after.at - before.at) * cores
    return (after.busy - before.busy - (after.kernel - before.kernel) - own) / capacity


def steal_share(before: Machine, after: Machine, cores: int) -> float:
    """The share of the machine that the hypervisor took."""
    return (after.steal - before.steal) / ((after.at - before.at) * cores)


def resident(pid: int) -> int:
    """Resident bytes of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no resident memory")


def touch_memory(folder: Path, amount: int) -> None:
    """Write ``amount`` bytes below ``folder`` and remove them: a virtual machine gets a page from its host on the first use only,
    and the first rounds would pay for that."""
    chunk = bytes(1 << 20)
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(amount // len(chunk)):
            file.write(chunk)
