"""The form of a history: lines of JSON, written as things happen, by as many processes as one likes.

Every line has ``time`` (nanoseconds of the machine's monotonic clock), ``process`` (who; a client that is started again is
another process), ``type`` and ``op``. ``invoke`` is written before something is asked for, then one of ``ok`` (it happened),
``fail`` (it certainly did not and will not) and ``info`` (unknown); a process that dies just stops. What the operations
carry:

========== ====================================================================================================================
begin      ``txn``: its name, unlike all others of the history
send       invoke: ``partition`` ("orders-0"), ``value`` (a string unlike all others), ``txn`` when it is part of one, ``source``
           (the value of the record that it was made from), ``ordered`` false for producers that may reorder and repeat.
           ok: ``value``, ``offset``. fail, info: ``value``
poll       ok: ``records``, a list of [partition, offset, value]; ``isolation`` ("read_committed" when missing); ``positions``,
           where the consumer stands afterwards, by partition, if known; ``txn`` when it was done inside of one
position   ok: ``positions``, by partition, an offset or null for one that is not known: the consumer was put there, by assign or
           seek or because partitions were assigned by a group (then it reads on from there)
revoke     ok: ``partitions`` that the consumer does not have any more
offsets    ``group``, ``offsets`` by partition; with ``txn`` sent to it, without committed at once. invoke, then ok, fail or info
commit     invoke, ok, fail, info: ``txn``
abort      invoke, ok, fail, info: ``txn``
fetch      invoke; ok: ``group``, ``offsets`` by partition, -1 where there is none: a group's committed offsets were asked for
drain      ok: ``positions``: after all writers had stopped, this process has read these partitions up to there, their ends
========== ====================================================================================================================

A commit may be asked for only when the sends of its transaction have been acknowledged, as clients' own commits do. Other fields
are carried along and not looked at.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Event = Mapping[str, Any]


class HistoryError(ValueError):
    """A history that cannot be read; the text says where and what was expected."""


class Recorder:
    """Writes a history; every method may be called from any thread. Each event is with the operating system when ``note``
    returns, so that a process killed afterwards has left it."""

    def __init__(self, path: str | Path, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """``clock`` in nanoseconds, the same for all files of one history."""
        self._file = Path(path).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115
        self._clock = clock
        self._guard = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def note(self, process: str, kind: str, op: str, **fields: Any) -> None:
        """One event, now. ``kind``: invoke, ok, fail, info."""
        with self._guard:
            event = {"time": self._clock(), "process": process, "type": kind, "op": op, **fields}
            self._file.write(json.dumps(event, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """No more events."""
        self._file.close()


def load(*paths: str | Path) -> Iterator[Event]:
    """The events of one history, which may lie in several files, in the order in which they happened.

    HistoryError for what is no event. A last line without its end is left out: its process was killed while it wrote.
    """
    files = [_events(Path(path)) for path in paths]
    return files[0] if len(files) == 1 else heapq.merge(*files, key=_time)


def _time(event: Event) -> int:
    moment: int = event["time"]
    return moment


def _events(path: Path) -> Iterator[Event]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                return
            try:
                event = json.loads(line)
                missing = [name for name in ("time", "process", "type", "op") if name not in event]
            except (ValueError, TypeError) as error:
                raise HistoryError(f"{path}, line {number} is not a JSON object: {error}") from error
            if missing:
                raise HistoryError(
                    f"{path}, line {number} lacks {', '.join(missing)}; every event has time, process, type and op"
                )
            yield event


def save(events: Iterable[Event], path: str | Path) -> None:
    """A history in one file."""
    with Path(path).open("w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event, separators=(",", ":")) + "\n")
