"""``tidelog-damaged`` in a partition's directory: the segments with known damage, so that a restart does not forget it.

The file has a checksum and lists base offsets. A start reads the listed segments whole and marks what is still damaged; the list
is then replaced by what was found. An entry may be out of date (the damage was cut or replaced meanwhile): it costs one read.
A file that does not match its checksum counts as a list of all segments. Apache Kafka ignores the file.
"""

from __future__ import annotations

import binascii
import logging
from collections.abc import Collection, Iterable
from typing import Protocol

from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import read_file, replace_file
from tidelog.storage.rotten_range import RottenRange

DAMAGED = "tidelog-damaged"
_logger = logging.getLogger(__name__)


class _Segment(Protocol):
    @property
    def base_offset(self) -> int: ...
    @property
    def rotten(self) -> Collection[RottenRange]: ...


class _Log(Protocol):
    """The directory of a log may change while a job runs."""

    @property
    def dir(self) -> str: ...


def _encode(bases: Iterable[int]) -> bytes:
    text = "".join(f"{base}\n" for base in sorted(bases))
    return f"{binascii.crc32(text.encode('ascii')):08x}\n{text}".encode("ascii")


def read_damaged(fs: FileSystem, directory: str) -> frozenset[int] | None:
    """Base offsets of the segments to read; none without the file, None when the file is damaged itself. Raises OSError."""
    path = f"{directory}/{DAMAGED}"
    raw = read_file(fs, path)
    if raw is None:
        return frozenset()
    try:
        bases = frozenset(map(int, raw.decode("ascii").splitlines()[1:]))
    except ValueError:
        bases = frozenset()
    if _encode(bases) == raw:
        return bases
    _logger.warning("%s is damaged: all segments beside it are read", path)
    return None


class DamageJob:
    """Replaces the list, or removes it when it is empty. Created on the event loop; ``run`` in any thread."""

    __slots__ = ("_bases", "_fs", "_log")

    def __init__(self, fs: FileSystem, log: _Log, bases: frozenset[int]) -> None:
        self._fs = fs
        self._log = log
        self._bases = bases

    def run(self) -> bool:
        """Blocks. False when the list could not be written: it is an aid, and a disk that fails shows elsewhere."""
        directory = self._log.dir
        path = f"{directory}/{DAMAGED}"
        try:
            if self._bases:
                replace_file(self._fs, path, _encode(self._bases))
            elif self._fs.exists(path):
                self._fs.remove(path)
                self._fs.sync_dir(directory)
        except OSError as problem:
            _logger.error("%s cannot be written, so a restart would forget this damage: %s", path, problem)
            return False
        return True


class KnownDamage:
    """What the list of one log says, as far as it was read or written since the start. It has one writer at a time."""

    __slots__ = ("_being_written", "_listed")

    def __init__(self, listed: frozenset[int] | None = frozenset()) -> None:
        self._listed = listed
        self._being_written = False

    def job(self, fs: FileSystem, log: _Log, segments: Iterable[_Segment]) -> DamageJob | None:
        """A job that brings the list up to date. None when it is, and while another job runs: ask again after ``written``."""
        bases = frozenset(segment.base_offset for segment in segments if segment.rotten)
        if self._being_written or bases == self._listed:
            return None
        self._listed = bases
        self._being_written = True
        return DamageJob(fs, log, bases)

    def forget(self) -> None:
        """The list on the disk does not read: the next job writes it again."""
        self._listed = None

    def written(self, ok: bool) -> None:
        """The result of a job. After a failed one the next one tries again."""
        self._being_written = False
        if not ok:
            self._listed = None
