"""A line for each login, change and look at records: who, what, from where, how it ended."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from tidelog.console.reading.rows import instant

_log = logging.getLogger("tidelog.console.audit")


class Audit:
    """``write``: takes a line without its end; the log by default."""

    def __init__(self, now_ms: Callable[[], int], write: Callable[[str], None] = _log.info) -> None:
        self._now_ms = now_ms
        self._write = write

    def add(self, action: str, *, user: str | None, address: str, outcome: str, **facts: Any) -> None:
        """``action``: login, logout, change, or read. ``outcome``: done, refused or failed, in one word."""
        event = {
            "time": instant(self._now_ms()),
            "action": action,
            "user": user,
            "address": address,
            "outcome": outcome,
            **{name: fact for name, fact in facts.items() if fact is not None},
        }
        self._write(json.dumps(event, ensure_ascii=True, separators=(",", ":")))


def to_file(path: str) -> Callable[[str], None]:
    """A writer of lines to a file, which only its owner can read. OSError when it cannot be opened."""
    import os

    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    file = os.fdopen(descriptor, "a", encoding="utf-8", buffering=1)

    def write(line: str) -> None:
        file.write(line + "\n")

    return write
