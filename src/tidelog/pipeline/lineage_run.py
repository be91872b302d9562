"""The OpenLineage events of a pipeline's run: START, RUNNING, COMPLETE, ABORT and FAIL, a run for each query.

A streaming query is one run from its start to its end. Statistics are what was read and, where it is known without counting
again, what was written, since the start.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tidelog.pipeline.flows import Flow, flows
from tidelog.pipeline.lineage import Told, run_event
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.sinks.base import OffsetRange

EVERY_S = 30.0
"""Seconds between two RUNNING events of a query at least."""


@dataclass(slots=True)
class _Running:
    """One query's run."""

    flow: Flow
    run_id: str
    told: Told = field(default_factory=Told)
    last_s: float = float("-inf")
    ended: bool = False


class RunLineage:
    """Makes the events of one run and passes them to ``send``."""

    def __init__(
        self, model: PipelineModel, send: Callable[[dict[str, Any]], None], namespace: str = "", engine_version: str = ""
    ) -> None:
        self._model = model
        self._send = send
        self._namespace = namespace
        self._version = engine_version
        self._running = {flow.name: _Running(flow, run_id(time.time_ns() // 1_000_000)) for flow in flows(model)}

    def started(self) -> None:
        """Send START, before anything is checked."""
        for running in self._running.values():
            self._tell(running, "START")

    def wrote(self, name: str, ranges: tuple[OffsetRange, ...], counts: Counts) -> None:
        """A batch is in all sinks of a query: send RUNNING if it is due."""
        running = self._running[name]
        topics = tuple(dict.fromkeys(piece.topic for piece in ranges))
        running.told = Told(topics or running.told.topics, counts.records, counts.undecodable, running.told.columns)
        if time.monotonic() - running.last_s >= EVERY_S:
            running.last_s = time.monotonic()
            self._tell(running, "RUNNING")

    def knows(self, name: str, columns: dict[str, dict[str, str]]) -> None:
        """Note the columns of a query's sources, name -> type."""
        running = self._running[name]
        running.told = Told(running.told.topics, running.told.records, running.told.undecodable, columns)

    def completed(self) -> None:
        """Send COMPLETE: the run ended by itself or was stopped by the user."""
        for running in self._running.values():
            self._end(running, "COMPLETE")

    def failed(self, names: frozenset[str], message: str) -> None:
        """Send FAIL for these queries (none named: all), ABORT for those that ended because of them."""
        for name, running in self._running.items():
            self._end(running, "FAIL" if name in names or not names else "ABORT", message)

    def _end(self, running: _Running, kind: str, message: str = "") -> None:
        if not running.ended:
            running.ended = True
            self._tell(running, kind, message if kind == "FAIL" else "")

    def _tell(self, running: _Running, kind: str, message: str = "") -> None:
        now = datetime.fromtimestamp(time.time_ns() / 1e9, UTC)
        event = run_event(
            self._model, running.flow, kind, running.run_id, now, running.told,
            namespace=self._namespace, engine_version=self._version, message=message,
        )  # fmt: skip
        self._send(event)


def run_id(now_ms: int) -> str:
    """A UUID of version 7 (RFC 9562), as OpenLineage recommends: it begins with the time."""
    bits = (now_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
