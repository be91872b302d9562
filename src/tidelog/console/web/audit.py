"""A line for each login, change and look at records: who, what, from where, how it ended."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from tidelog.console.asking.acl_rows import described
from tidelog.console.reading.rows import instant
from tidelog.model.acl import AccessControlEntry

MOST_NOTED: Final = 4000
"""Characters of what a change was to do."""
_NOT_NOTED: Final = frozenset({"dry_run", "confirm", "key", "value", "headers"})
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
        line = json.dumps(event, ensure_ascii=True, separators=(",", ":"))
        try:
            self._write(line)
        except OSError as error:  # it is about what has happened already
            _log.error("the audit cannot be written (%s), so the line stands here: %s", error.strerror or error, line)


def asked(body: Mapping[str, Any]) -> str | None:
    """What a change was to do, as JSON: the body without what a record carries. None where the path says it all."""
    left = {name: each for name, each in body.items() if name not in _NOT_NOTED and each not in (None, [], {})}
    if not left:
        return None
    text = json.dumps(left, ensure_ascii=True, separators=(",", ":"), default=_described)
    return text if len(text) <= MOST_NOTED else text[:MOST_NOTED] + "..."


def outcome_of(answer: Any) -> tuple[str, str | None]:
    """``done``, or ``failed`` with the parts of a change that were refused."""
    failed = answer.get("failed") if isinstance(answer, dict) else None
    if not failed:
        return "done", None
    return "failed", "; ".join(f"{each['what']}: {each['error']}" for each in failed)[:MOST_NOTED]


def _described(value: Any) -> str:
    return described(value) if isinstance(value, AccessControlEntry) else str(value)


def to_file(path: str) -> Callable[[str], None]:
    """A writer of lines to a file, which only its owner can read. OSError when it cannot be opened."""
    import os

    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    file = os.fdopen(descriptor, "a", encoding="utf-8", buffering=1)

    def write(line: str) -> None:
        file.write(line + "\n")

    return write
