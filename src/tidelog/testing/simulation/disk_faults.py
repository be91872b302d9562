"""Faults that a simulated disk is given ahead: operations that fail, and directories that are full."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

UNLIMITED = 1 << 40


@dataclass(slots=True)
class _Fault:
    kind: str
    countdown: int
    code: int
    path_part: str
    times: int


class DiskFaults:
    def __init__(self, room: dict[str, int] | None = None) -> None:
        """``room``: bytes by which files may still grow, by a part of their path."""
        self._faults: list[_Fault] = []
        self._room = room or {}

    def fail(self, kind: str, nth: int, code: int, *, path_part: str = "", times: int = 1) -> None:
        """The ``nth`` operation (from 1) of a kind, on a path that contains ``path_part``, raises OSError ``code``; so do
        the ``times - 1`` after it."""
        self._faults.append(_Fault(kind, nth, code, path_part, times))

    def fill(self, path_part: str, room: int) -> None:
        """From now on files below paths with ``path_part`` may grow by ``room`` bytes in total, and no file can be created
        once that is used up: ENOSPC, until ``heal``."""
        self._room[path_part] = room

    @property
    def planned(self) -> bool:
        """Whether an operation may fail, or a directory be full."""
        return bool(self._faults or self._room)

    @property
    def is_full(self) -> bool:
        """Whether ``fill`` is in force."""
        return bool(self._room)

    def heal(self) -> None:
        """Ends all faults and restores the room."""
        self._faults.clear()
        self._room.clear()

    def check(self, kind: str, path: str) -> None:
        """Count an operation that begins. OSError if it is to fail."""
        for fault in self._faults:
            if fault.kind == kind and fault.path_part in path:
                fault.countdown -= 1
                if fault.countdown <= 0 and fault.times > 0:
                    fault.times -= 1
                    raise OSError(fault.code, os.strerror(fault.code), path)
        if kind in {"create", "mkdir"} and self.room_at(path) <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def room_at(self, path: str) -> int:
        """Bytes by which the file may grow."""
        return min((room for part, room in self._room.items() if part in path), default=UNLIMITED)

    def use_room(self, path: str, size: int) -> None:
        """Count ``size`` bytes by which a file grew."""
        for part in self._room:
            if part in path:
                self._room[part] -= size

    def after_stop(self) -> DiskFaults:
        """What is left for the next start: a full disk stays full, planned failures are gone."""
        return DiskFaults(dict(self._room))
