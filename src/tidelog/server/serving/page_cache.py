"""Whether part of a file is in the page cache. Checked before the loop reads it, so that the loop never waits for a disk.

Linux answers with ``preadv2(RWF_NOWAIT)``, which fails with EAGAIN when a page is missing. Where a file system does not support
the flag, memory file systems count as always resident and all others (network file systems, overlays) as not resident, as does
everything on systems without the flag. Those reads go through a worker thread, which is slower but never stalls the loop.
"""

from __future__ import annotations

import errno
import os
from typing import Protocol

_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
_IN_MEMORY = {"tmpfs", "ramfs"}

STRIDE = 128 * 1024
"""One byte is checked per this many bytes: the kernel mostly reads and drops files in runs of at least that size."""

_without_flag: dict[int, bool] = {}
"""By device number, for file systems that refused the flag: whether they live in memory."""
_byte = [bytearray(1)]


class Opened(Protocol):
    """An open descriptor. ``in_memory``: None until its file system refuses the flag, then whether that lives in memory."""

    fd: int
    in_memory: bool | None


class Borrowed:
    """A descriptor that belongs to another object."""

    __slots__ = ("fd", "in_memory")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.in_memory: bool | None = None


def read_resident(opened: Opened, position: int, into: memoryview) -> int:
    """Bytes read into ``into`` from the page cache alone; -1 when the first byte is not cached, 0 at the end of the file.

    OSError: the disk failed.
    """
    if not _NOWAIT:
        return -1
    if opened.in_memory is None:
        try:
            return os.preadv(opened.fd, [into], position, _NOWAIT)
        except BlockingIOError:
            return -1
        except OSError as error:
            _refused(opened, error)
    return os.preadv(opened.fd, [into], position) if opened.in_memory else -1


def resident_length(opened: Opened, position: int, length: int) -> int:
    """How many bytes from ``position`` on are resident, judged by one byte per STRIDE."""
    if not _NOWAIT:
        return 0
    if opened.in_memory is not None:
        return length if opened.in_memory else 0
    fd, end = opened.fd, position + length
    at = position
    try:
        while at < end:
            os.preadv(fd, _byte, at, _NOWAIT)
            at += STRIDE
        os.preadv(fd, _byte, end - 1, _NOWAIT)
    except BlockingIOError:
        return max(0, min(at, end) - STRIDE - position) if at > position else 0
    except OSError as error:
        _refused(opened, error)
        return length if opened.in_memory else 0
    return length


def _refused(opened: Opened, error: OSError) -> None:
    """Remembers that the file system does not know the flag, so that the next read does not ask again. Raises any other
    error."""
    if error.errno not in _UNSUPPORTED:
        raise error
    opened.in_memory = _lives_in_memory(opened.fd)


def _lives_in_memory(fd: int) -> bool:
    device = os.fstat(fd).st_dev
    known = _without_flag.get(device)
    if known is None:
        known = _without_flag[device] = _file_system_type(device) in _IN_MEMORY
    return known


def _file_system_type(device: int) -> str:
    """The type of the mounted file system with that device number; empty when unknown."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                words = line.split()
                if words[2] == wanted:
                    return words[words.index("-") + 1]
    except OSError:
        return ""
    return ""
