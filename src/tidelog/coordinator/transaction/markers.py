"""Markers that are still missing: which partitions a decided transaction waits for, and when they are asked again.

None of this is in the log: a decision without its completion says it all, and after a restart every partition is asked again,
which finds the marker written already. A partition is asked until it answers; one that refuses is asked again a little later, for
ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

FIRST_PAUSE_MS = 20
LONGEST_PAUSE_MS = 1_000
UNANSWERED_MS = 30_000
"""A partition that has not answered for this long is asked again; markers may come twice."""

DONE = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID)
"""The marker is safe, or the cluster has no such partition any more, so that nobody will ever miss it."""


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """One decision for some partitions. ``round`` comes back with each answer: answers to a former decision count for nothing."""

    transactional_id: str
    round: int
    producer_id: int
    producer_epoch: int
    committed: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MarkerAnswer:
    """What one partition said. UNKNOWN_TOPIC_ID: the cluster has no such partition any more."""

    transactional_id: str
    round: int
    partition: TopicPartition
    error: ErrorCode


class MarkerSender(Protocol):
    """Who carries markers to the leaders of partitions, here and elsewhere."""

    def __call__(self, markers: WriteMarkers, coordinator_epoch: int) -> None:
        """Begins to; each partition is answered by a MarkerAnswer, sooner or later or never."""
        ...


def write_markers(metadata: TransactionMetadata, round_: int, partitions: Iterable[TopicPartition]) -> WriteMarkers:
    """The request for a decided transaction."""
    assert metadata.ending, f"{metadata} is not decided"
    return WriteMarkers(
        metadata.transactional_id,
        round_,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state is TransactionState.PREPARE_COMMIT,
        metadata.client_version,
        tuple(partitions),
    )


class Outstanding:
    """The partitions of one decided transaction that have not answered, with the time at which each is asked again."""

    __slots__ = ("_pauses", "due", "round")

    def __init__(self, round_: int, partitions: Iterable[TopicPartition], due_ms: int) -> None:
        self.round = round_
        self.due: dict[TopicPartition, int] = dict.fromkeys(partitions, due_ms)
        self._pauses: dict[TopicPartition, int] = {}

    def next_due(self) -> int:
        """When a partition has to be asked (again); there must be one."""
        return min(self.due.values())

    def answered(self, partition: TopicPartition, error: ErrorCode, now_ms: int) -> int | None:
        """An answer to this round; when the partition is to be asked again, None when it is not."""
        if partition not in self.due:
            return None
        if error in DONE:
            del self.due[partition]
            return None
        pause = self._pauses.get(partition, FIRST_PAUSE_MS)
        self._pauses[partition] = min(2 * pause, LONGEST_PAUSE_MS)
        self.due[partition] = now_ms + pause
        return now_ms + pause

    def take_due(self, now_ms: int) -> list[TopicPartition]:
        """Those to be asked now; they have UNANSWERED_MS to answer."""
        found = [partition for partition, due_ms in self.due.items() if due_ms <= now_ms]
        for partition in found:
            self.due[partition] = now_ms + UNANSWERED_MS
        return found
