"""How long the syncs of log segments took, in whichever thread they ran: Kafka's ``LogFlushStats``."""

from __future__ import annotations

import threading
import time

from tidelog.metrics.latency import WINDOW_NS, Latencies


class SyncTimes:
    """Thread-safe."""

    __slots__ = ("_guard", "_latencies")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._latencies = Latencies()

    def began(self) -> int:
        """To be handed to ``ended``."""
        return time.perf_counter_ns()

    def ended(self, began_ns: int) -> None:
        """A sync that began then has succeeded."""
        now_ns = time.perf_counter_ns()
        with self._guard:
            self._latencies.record(now_ns - began_ns, now_ns // WINDOW_NS)

    def look(self) -> tuple[dict[int, int], int, int]:
        """The counts by bucket of the last one to two minutes; the number of syncs and their sum in ns since the start."""
        with self._guard:
            return self._latencies.recent(time.perf_counter_ns() // WINDOW_NS), self._latencies.count, self._latencies.sum_ns
