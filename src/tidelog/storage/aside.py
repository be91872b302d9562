"""Bytes that recovery removes from a log are kept beside it as ``<segment>.log.<position>-<n>.cut``, which loading ignores.

This module decides the name (Kafka's tools and our loading skip the suffix) and how much is kept: per directory the newest files,
at most ``MOST_FILES`` and ``MOST_BYTES``, but always the newest one. Bytes that are all zero are not kept. On a full disk a torn
tail is cut without a copy; otherwise the node could not start.
"""

from __future__ import annotations

import errno
import logging

from tidelog.model.ports import File, FileSystem

ASIDE_SUFFIX = ".cut"
MOST_FILES = 16
MOST_BYTES = 1 << 30
_COPY_BYTES = 1 << 20
_logger = logging.getLogger(__name__)


def keep_bytes(fs: FileSystem, file: File, path: str, position: int, end: int) -> str | None:
    """Copies [position, end) of the log file at ``path`` beside it and syncs the copy; returns its path. None when the range
    is all zero or the disk is full. Other OSErrors are raised."""
    if not _holds_anything(file, position, end):
        return None
    target = _free_name(fs, path, position)
    try:
        copy = fs.open(target, create=True)
        try:
            for at in range(position, end, _COPY_BYTES):
                copy.write(at - position, file.read(at, min(_COPY_BYTES, end - at)))
            copy.sync()
        finally:
            copy.close()
        fs.sync_dir(path.rpartition("/")[0])
    except OSError as problem:
        if problem.errno != errno.ENOSPC:
            raise
        _logger.warning("%s: bytes %d to %d cannot be kept: %s", path, position, end, problem)
        if fs.exists(target):
            fs.remove(target)
        return None
    _trim(fs, path.rpartition("/")[0], target)
    return target


def keep_file(fs: FileSystem, path: str) -> str | None:
    """Renames a whole log file to set it aside; deletes it if it is empty."""
    if not fs.stat(path).size:
        fs.remove(path)
        return None
    target = _free_name(fs, path, 0)
    fs.rename(path, target)
    _trim(fs, path.rpartition("/")[0], target)
    return target


def _holds_anything(file: File, position: int, end: int) -> bool:
    return any(file.read(at, min(_COPY_BYTES, end - at)).strip(b"\0") for at in range(position, end, _COPY_BYTES))


def _free_name(fs: FileSystem, path: str, position: int) -> str:
    number = 1
    while fs.exists(f"{path}.{position}-{number}{ASIDE_SUFFIX}"):
        number += 1
    return f"{path}.{position}-{number}{ASIDE_SUFFIX}"


def _trim(fs: FileSystem, directory: str, newest: str) -> None:
    """Deletes the oldest files; ``newest`` stays, whatever its size."""
    kept = [f"{directory}/{name}" for name in fs.listdir(directory) if name.endswith(ASIDE_SUFFIX)]
    stats = sorted((fs.stat(path).modified_ms, path, fs.stat(path).size) for path in kept if path != newest)
    room = MOST_BYTES - fs.stat(newest).size
    for number, (_, path, size) in enumerate(reversed(stats), 1):
        room -= size
        if number >= MOST_FILES or room < 0:
            fs.remove(path)
