"""Bytes that recovery removes from a log are kept beside it as ``<segment>.log.<position>-<n>.cut``, which loading ignores.

This module decides the name (Kafka's tools and our loading skip the suffix) and how much is kept: per directory the newest files,
at most ``MOST_FILES`` and ``MOST_BYTES``, but always those of the same occasion (``made``). n counts upwards within the
directory: a renamed file has an old date. Bytes that are all zero are not kept. Where the disk, a quota or the file system has no
room for a copy, a torn tail is cut without one; otherwise the node could not start.
"""

from __future__ import annotations

import errno
import logging
import re

from tidelog.model.ports import File, FileSystem

ASIDE_SUFFIX = ".cut"
MOST_FILES = 16
MOST_BYTES = 1 << 30
_COPY_BYTES = 1 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NUMBER = r"-(\d+)\.cut$"
_logger = logging.getLogger(__name__)


def keep_bytes(fs: FileSystem, file: File, path: str, position: int, end: int, *, made: list[str] | None = None) -> str | None:
    """Copies [position, end) of the log file at ``path`` beside it and syncs the copy; returns its path. None when the range
    is all zero or there is no room. Other OSErrors are raised. ``made``: what was kept on the same occasion, with this copy
    added."""
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
        if problem.errno not in _NO_ROOM:
            raise
        _logger.warning("%s: bytes %d to %d cannot be kept: %s", path, position, end, problem)
        if fs.exists(target):
            fs.remove(target)
        return None
    return _kept(fs, target, made)


def keep_file(fs: FileSystem, path: str, *, made: list[str] | None = None) -> str | None:
    """Renames a whole log file to set it aside; deletes it if it is empty. ``made``: as of ``keep_bytes``."""
    if not fs.stat(path).size:
        fs.remove(path)
        return None
    target = _free_name(fs, path, 0)
    fs.rename(path, target)
    return _kept(fs, target, made)


def _holds_anything(file: File, position: int, end: int) -> bool:
    return any(file.read(at, min(_COPY_BYTES, end - at)).strip(b"\0") for at in range(position, end, _COPY_BYTES))


def _number(path: str) -> int:
    found = re.search(_NUMBER, path)
    return 0 if found is None else int(found[1])


def _copies(fs: FileSystem, directory: str) -> list[str]:
    return [f"{directory}/{name}" for name in fs.listdir(directory) if name.endswith(ASIDE_SUFFIX)]


def _free_name(fs: FileSystem, path: str, position: int) -> str:
    number = 1 + max(map(_number, _copies(fs, path.rpartition("/")[0])), default=0)
    return f"{path}.{position}-{number}{ASIDE_SUFFIX}"


def _kept(fs: FileSystem, target: str, made: list[str] | None) -> str:
    """Deletes the oldest files; those of this occasion stay, whatever their size."""
    fresh = [*(made or ()), target]
    if made is not None:
        made.append(target)
    older = [path for path in _copies(fs, target.rpartition("/")[0]) if path not in fresh]
    room = MOST_BYTES - sum(fs.stat(path).size for path in fresh)
    for number, path in enumerate(sorted(older, key=_number, reverse=True), len(fresh)):
        room -= fs.stat(path).size
        if number >= MOST_FILES or room < 0:
            fs.remove(path)
    return target
