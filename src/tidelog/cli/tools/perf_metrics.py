"""``--print-metrics`` of the perf tests: librdkafka's statistics, in the lines of Kafka's tools.

Names and units are librdkafka's (STATISTICS.md of librdkafka). Times are in microseconds there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

INTERVAL_MS = 500
LIMIT_S = 3.0
"""How long the end of a run waits for statistics that count all of it."""
_OF_NODES, _OF_TOPICS = "brokers", "topics"


class Metrics:
    """The last statistics of a client."""

    def __init__(self, kind: str) -> None:
        """``kind``: producer or consumer, the first word of each group of metrics."""
        self._kind = kind
        self._last: Mapping[str, Any] = {}
        self._count = 0

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of librdkafka that make a client report here."""
        return {"statistics.interval.ms": str(INTERVAL_MS), "stats_cb": self.received}

    def received(self, text: str) -> None:
        """Takes statistics as librdkafka writes them, JSON."""
        self._last = json.loads(text)
        self._count += 1

    def settle(self, poll: Callable[[float], object], now: Callable[[], float] = time.monotonic) -> None:
        """Polls until the statistics are newer than this call, or the limit is over."""
        before, end = self._count, now() + LIMIT_S
        while self._count <= before and now() < end:
            poll(0.1)

    def print(self) -> None:
        """Prints all metrics by name; nothing without statistics."""
        rows = sorted(self._rows())
        if not rows:
            return
        width = max(len(name) for name, _ in rows)
        print(f"\n{'Metric Name':<{width}}   Value")
        for name, value in rows:
            print(f"{name:<{width}} : {value}")

    def _rows(self) -> Iterator[tuple[str, str]]:
        client = f"client-id={self._last.get('client_id', '')}"
        yield from _named(f"{self._kind}-metrics", client, self._last)
        for node in self._last.get(_OF_NODES, {}).values():
            if node.get("nodeid", -1) >= 0:
                yield from _named(f"{self._kind}-node-metrics", f"{client}, node-id=node-{node['nodeid']}", node)
        for name, topic in self._last.get(_OF_TOPICS, {}).items():
            yield from _named(f"{self._kind}-topic-metrics", f"{client}, topic={name}", topic)


def _named(group: str, tags: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The numbers among ``values``, and those of its windows: averages, percentiles."""
    for name, value in values.items():
        parts = value.items() if isinstance(value, dict) and "avg" in value else ()
        for each, number in ((name, value), *((f"{name}-{part}", number) for part, number in parts)):
            if isinstance(number, int | float) and not isinstance(number, bool):
                text = f"{number:.3f}" if isinstance(number, float) else str(number)
                yield f"{group}:{each.replace('_', '-')}:{{{tags}}}", text
