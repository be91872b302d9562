"""Counters of the hot path, one set per topic; the broker's totals are their sums.

Requests add plain integers; ``/metrics`` reads them. The names are those of Kafka's BrokerTopicMetrics. The counters of a deleted
topic stay in the totals.
"""

from __future__ import annotations


class TopicStats:
    """Counters of one topic since the start: requests per partition they named, bytes as on disk."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "messages_in",
        "replication_bytes_in",
        "replication_bytes_out",
        "total_fetch_requests",
        "total_produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.total_produce_requests = 0
        self.failed_produce_requests = 0
        self.total_fetch_requests = 0
        self.failed_fetch_requests = 0

    def add(self, other: TopicStats) -> None:
        for name in TopicStats.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def appended(self, size: int, records: int) -> None:
        """A produce of ``size`` bytes to one partition is in its log."""
        self.total_produce_requests += 1
        self.bytes_in += size
        self.messages_in += records

    def refused(self, size: int) -> None:
        """A produce of ``size`` bytes to one partition was rejected."""
        self.total_produce_requests += 1
        self.failed_produce_requests += 1
        self.bytes_rejected += size
