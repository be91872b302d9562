"""One partition of a consumer's or a follower's fetch: what is asked for, and what was sent last."""

from __future__ import annotations

from tidelog.model import ids
from tidelog.model.ids import Uuid
from tidelog.replication.partition import Partition
from tidelog.replication.reads import PartitionRead

WantedPartition = tuple[int, int, int, int, int, int]
"""(index, current leader epoch, fetch offset, last fetched epoch, follower's log start offset, max bytes)."""


class FetchPartition:
    """One partition of a fetch: what the client asks for and, in a session, what it was last sent.

    ``topic`` is None while ``topic_id`` is unknown. ``partition`` is the result of the last lookup; a deleted one is looked up
    again.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start",
        "held_back",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "read_stable_offset",
        "sent_high_watermark",
        "sent_last_stable_offset",
        "sent_log_start_offset",
        "stale",
        "topic",
        "topic_id",
        "watched",
    )

    def __init__(self, topic: str | None, topic_id: Uuid, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.current_leader_epoch = ids.NO_EPOCH
        self.fetch_offset = 0
        self.follower_start = ids.NO_OFFSET
        self.last_fetched_epoch = ids.NO_EPOCH
        self.max_bytes = 0
        self.partition: Partition | None = None
        self.watched: Partition | None = None
        """The partition that the session watches for this entry."""
        self.stale = False
        """The partition changed since it was last read."""
        self.read_stable_offset = -1
        self.held_back = False
        self.sent_high_watermark = -1
        self.sent_last_stable_offset = -1
        self.sent_log_start_offset = -1

    def ask(self, wanted: WantedPartition) -> None:
        """Store what a request asks of this partition."""
        _, self.current_leader_epoch, self.fetch_offset, self.last_fetched_epoch, self.follower_start, self.max_bytes = wanted

    def answer(self, read: PartitionRead) -> bool:
        """Record ``read`` as sent. False: the client knows all of it, so an incremental answer omits it."""
        if (
            read.high_watermark == self.sent_high_watermark
            and read.log_start_offset == self.sent_log_start_offset
            and read.last_stable_offset == self.sent_last_stable_offset
        ):
            return read.size > 0 or read.is_news
        self.sent_high_watermark = read.high_watermark
        self.sent_log_start_offset = read.log_start_offset
        self.sent_last_stable_offset = read.last_stable_offset
        return True
