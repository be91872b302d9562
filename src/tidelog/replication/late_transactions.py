"""Transactions that hold back a partition's last stable offset for longer than a transaction may last.

As in Kafka, a transaction is late when its producer's last batch in the partition is older than the broker's longest transaction
timeout plus five minutes. Its coordinator should have ended it long before. If it did not, the transaction stays open:
read_committed consumers see nothing new, and compaction stops there. Each is reported once, with the command that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tidelog.model.ids import TopicPartition
from tidelog.replication.partition_view import PartitionView

GRACE_MS = 300_000


class LateTransaction(NamedTuple):
    """The oldest open transaction of a partition: its producer and first offset."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    transactional_id: str | None
    first_offset: int
    last_timestamp_ms: int

    def described(self, now_ms: int, name: str | None) -> str:
        """One log line. ``name``: the transactional id, if known."""
        return (
            f"{self.topic_partition}: the transaction of producer {self.producer_id}, epoch {self.producer_epoch} "
            f"(transactional id {name or 'unknown'}) has been open since offset {self.first_offset}; its last batch is "
            f"{(now_ms - self.last_timestamp_ms) // 1000} s old. Readers of committed records wait for it: "
            f"end it with tidelog transactions abort --topic {self.topic_partition.topic} "
            f"--partition {self.topic_partition.partition} --start-offset {self.first_offset}."
        )


def late_transaction(partition: PartitionView, now_ms: int, max_timeout_ms: int) -> LateTransaction | None:
    """The transaction that holds back this partition's readers, if it is late and this broker leads."""
    log = partition.log
    if log is None or not partition.is_leader:
        return None
    oldest = log.producers.oldest_open()
    if oldest is None or oldest.last_timestamp <= 0 or now_ms - oldest.last_timestamp <= max_timeout_ms + GRACE_MS:
        return None
    return LateTransaction(
        partition.topic_partition,
        oldest.producer_id,
        oldest.epoch,
        oldest.transactional_id,
        oldest.txn_first_offset,
        oldest.last_timestamp,
    )


class LateTransactions:
    """The late transactions of all partitions, each reported once."""

    __slots__ = ("_name_of", "_named", "count")

    def __init__(self, name_of: Callable[[int], str | None]) -> None:
        """``name_of`` returns the transactional id of a producer, if known."""
        self._name_of = name_of
        self._named: frozenset[LateTransaction] = frozenset()
        self.count = 0
        """Partitions with a late transaction at the last look (PartitionsWithLateTransactionsCount)."""

    def look(self, partitions: Iterable[PartitionView], now_ms: int, max_timeout_ms: int) -> list[str]:
        """Log lines for the transactions that were not late at the last look."""
        late = [found for each in partitions if (found := late_transaction(each, now_ms, max_timeout_ms)) is not None]
        news = [each for each in late if each not in self._named]
        self._named = frozenset(late)
        self.count = len(late)
        return [each.described(now_ms, each.transactional_id or self._name_of(each.producer_id)) for each in news]
