"""Replication throttles (KIP-73): limits on copying out-of-sync replicas, so that reassignments leave bandwidth for clients.

Over the limit, a leader sends no records to a throttled follower, and a follower does not fetch. Replicas in the ISR are never
throttled. A rate covers all throttled partitions together, over the last windows (replication.quota.window.*). So the first
seconds may use as much as all windows together, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping

ALL = frozenset((-1,))
"""Every partition of a topic."""


class ReplicationQuota:
    """One direction on this broker. ``rate``: bytes a second, None for no limit."""

    __slots__ = ("_bytes", "_replicas", "_total", "rate", "window_ms", "windows")

    def __init__(self, windows: int = 11, window_ms: int = 1000) -> None:
        self.windows = windows
        self.window_ms = window_ms
        self.rate: int | None = None
        self._replicas: Mapping[str, frozenset[int]] = {}
        self._bytes: dict[int, int] = {}
        self._total = 0

    def change(self, rate: int | None, replicas: Mapping[str, frozenset[int]]) -> None:
        """Set the rate and, by topic, the throttled partitions."""
        self.rate, self._replicas = rate, replicas

    def applies(self, topic: str, index: int) -> bool:
        """Whether the partition is throttled."""
        if self.rate is None:
            return False
        partitions = self._replicas.get(topic)
        return partitions is not None and (partitions is ALL or index in partitions)

    def record(self, count: int, now_ms: int) -> None:
        """Count ``count`` bytes of throttled partitions."""
        window = now_ms // self.window_ms
        self._bytes[window] = self._bytes.get(window, 0) + count
        self._total += count

    def wait_ms(self, now_ms: int) -> int:
        """Milliseconds until the rate is below the limit; 0 when it is."""
        if self.rate is None:
            return 0
        oldest = now_ms // self.window_ms - self.windows + 1
        for window in [window for window in self._bytes if window < oldest]:
            self._total -= self._bytes.pop(window)
        allowed = self.rate * (self.windows - 1) * self.window_ms / 1000
        excess = self._total - allowed
        return 0 if excess <= 0 else min(max(1, int(excess * 1000 / max(1, self.rate))), self.windows * self.window_ms)


class Throttles:
    """Both directions, and moves between this broker's log dirs, each counted separately (KIP-113)."""

    __slots__ = ("follower", "leader", "log_dirs")

    def __init__(self, windows: int = 11, window_ms: int = 1000, log_dirs: ReplicationQuota | None = None) -> None:
        self.leader = ReplicationQuota(windows, window_ms)
        self.follower = ReplicationQuota(windows, window_ms)
        self.log_dirs = log_dirs or ReplicationQuota(windows, window_ms)


def throttled_partitions(listed: tuple[str, ...], broker_id: int) -> frozenset[int]:
    """The partitions that a topic's ``*.replication.throttled.replicas`` names on this broker."""
    if listed == ("*",):
        return ALL
    pairs = (item.partition(":") for item in listed)
    return frozenset(int(partition) for partition, _, broker in pairs if int(broker) == broker_id)
