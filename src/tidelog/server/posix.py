"""Wrappers for calls that not every system has: the only module that knows what is missing where.

Linux and macOS have all of them. Windows has no positional reads and writes, record locks, descriptor limits, directory syncs, or
renames of open files; this module provides replacements. The replacements have only been run on Linux, with the calls removed
(tests/unit/server/test_posix.py).
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from tidelog.model.ports import Buffer

fcntl: Any
resource: Any
try:
    import fcntl
    import resource
except ImportError:  # missing on Windows
    fcntl = resource = None

HAS_POSITIONS = hasattr(os, "pread") and hasattr(os, "pwrite")
OPEN_FILES_MOVE = HAS_POSITIONS
"""Whether an open file may be renamed or removed."""
LOOPS_HEAR_SIGNALS = os.name == "posix"
OPEN_FLAGS: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
DESCRIPTORS_ANYWHERE = 2048
"""Assumed limit of open files where the system reports none."""
_one_at_a_time = threading.Lock()
"""Without positional calls all threads share a descriptor's position."""


def seek_and_read(fd: int, length: int, position: int) -> bytes:
    """Stands in for ``os.pread``."""
    with _one_at_a_time:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, length)


def seek_and_write(fd: int, data: Buffer, position: int) -> int:
    """Stands in for ``os.pwrite``."""
    with _one_at_a_time:
        os.lseek(fd, position, os.SEEK_SET)
        return os.write(fd, data)


read_at: Callable[[int, int, int], bytes] = os.pread if HAS_POSITIONS else seek_and_read
write_at: Callable[[int, Buffer, int], int] = os.pwrite if HAS_POSITIONS else seek_and_write


def lock_whole(fd: int) -> None:
    """Locks a file against other processes until the descriptor is closed. OSError with EACCES or EAGAIN when another process
    holds the lock."""
    if fcntl is not None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]


def sync_directory(fd_of: Any, path: str) -> int | None:
    """Opens a directory for a sync; None where directories cannot be opened and the system keeps their entries safe by itself."""
    if not hasattr(os, "O_DIRECTORY"):
        return None
    descriptor: int = fd_of(path, os.O_RDONLY | os.O_DIRECTORY | OPEN_FLAGS)
    return descriptor


def space(path: str) -> tuple[int, int]:
    """Size of the file system in bytes, and bytes that may still be written."""
    if hasattr(os, "statvfs"):
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    import shutil  # imported late: it loads every codec of Python's archives

    usage = shutil.disk_usage(path)
    return usage.total, usage.free


def boot_id() -> str:
    """The kernel's id of this boot (Linux); empty on other systems."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def taken(problem: OSError) -> bool:
    """Whether a lock failed because another process holds it."""
    return problem.errno in {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


def on_signal(loop: asyncio.AbstractEventLoop, number: int, callback: Callable[[], object]) -> None:
    """Calls ``callback`` on the loop when the process gets the signal. Call it from the main thread."""
    if LOOPS_HEAR_SIGNALS:
        loop.add_signal_handler(number, callback)
    else:
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(callback))
