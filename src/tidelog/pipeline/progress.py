"""The progress of a running pipeline: numbers from Spark's progress, and a line for people. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark.planning import SourceOffset


@dataclass(slots=True)
class Counts:
    """Rows since the start. ``broken``: by (transform, rule); ``batches``: ``bad`` by batch."""

    records: int = 0
    undecodable: int = 0
    broken: Counter[tuple[str, str]] = field(default_factory=Counter)
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)

    def ended(self, batch: int, before: tuple[int, int]) -> None:
        """A batch of Spark's has landed; ``before`` is the value of ``bad`` when it began."""
        undecodable, broken = self.bad
        self.batches[batch] = undecodable - before[0], broken - before[1]

    def taken(self, batch: int) -> tuple[int, int]:
        """Undecodable records and rows that broke a rule in one batch. Forgets it and the batches before it."""
        found = self.batches.get(batch, (0, 0))
        for number in [known for known in tuple(self.batches) if known <= batch]:  # Another thread adds to them.
            del self.batches[number]
        return found

    @property
    def bad(self) -> tuple[int, int]:
        """Undecodable records and rows that broke a rule, since the start."""
        return self.undecodable, self.broken.total()


@dataclass(frozen=True, slots=True)
class Progress:
    """One query after a batch. ``lag``: records not read yet, by topic; ``rate``: records each second."""

    flow: str
    batch_id: int
    records: int
    rate: float
    lag: dict[str, int]

    @property
    def eta_s(self) -> float | None:
        """Seconds until the lag is gone at this rate; None when it never is."""
        left = sum(self.lag.values())
        return 0.0 if not left else (left / self.rate if self.rate > 0 else None)


def progress_of(flow: str, found: Mapping[str, Any], ends: Mapping[TopicPartition, int] | None = None) -> Progress:
    """Progress from a StreamingQueryProgress as a dict.

    ``ends``: where the topics ended when the query began. For a batch that an earlier run planned, Spark does not ask for that
    and reports no latest offset.
    """
    sources = found.get("sources") or []
    batch = int(found.get("batchId", -1))
    seconds = float((found.get("durationMs") or {}).get("triggerExecution", 0)) / 1000
    records = 0
    lag: dict[str, int] = {}
    for source in sources:
        start, end = _offset(source.get("startOffset")), _offset(source.get("endOffset"))
        latest = _offset(source.get("latestOffset"))
        if end is None:
            continue
        for at, stop in end.positions.items():
            records += max(0, stop - (start.positions.get(at, 0) if start else 0))
            behind = ((ends or {}) if latest is None else latest.positions).get(at, stop) - stop
            lag[at.topic] = lag.get(at.topic, 0) + max(0, behind)
    return Progress(flow, batch, records, records / seconds if seconds > 0 else 0.0, lag)


def _offset(text: Any) -> SourceOffset | None:
    """Spark reports offsets as JSON text, or parsed."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
        return SourceOffset.from_json(found) if isinstance(found, dict) else None
    except (ValueError, ConfigError):
        return None


def line(progress: Progress, bad: int, broken: int) -> str:
    """One line for a terminal or a log. All its numbers are the batch's."""
    lags = " ".join(f"{topic} {count:,}" for topic, count in sorted(progress.lag.items())) or "-"
    eta = progress.eta_s
    parts = [
        f"{progress.flow}: batch {progress.batch_id}",
        f"{progress.records:,} records",
        f"{progress.rate:,.0f}/s",
        f"lag {lags}",
        "up to date" if eta == 0 else f"ETA {duration(eta)}",
    ]
    parts += [f"{bad:,} undecodable"] if bad else []
    parts += [f"{broken:,} broke a rule"] if broken else []
    return "  ".join(parts)


def duration(seconds: float | None) -> str:
    """``42 s``, ``3 min``, ``2.5 h``."""
    if seconds is None:
        return "never at this rate"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def ends(ranges: tuple[OffsetRange, ...]) -> dict[str, dict[int, int]]:
    """The ends of ranges, by topic and partition."""
    found: dict[str, dict[int, int]] = {}
    for piece in ranges:
        found.setdefault(piece.topic, {})[piece.partition] = piece.end
    return found
