"""Counters of the hot path, one set per topic; the broker's totals are their sums.

What is decided here: nothing. Requests add plain integers; whoever answers ``/metrics`` reads them. Names are those of Kafka's
BrokerTopicMetrics. The counters of a deleted topic stay in the totals.
"""

from __future__ import annotations


class TopicStats:
    """What happened to one topic since the start: requests per partition they named, bytes as on disk."""

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
        """Add the counts of ``other`` to these."""
        for name in TopicStats.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
