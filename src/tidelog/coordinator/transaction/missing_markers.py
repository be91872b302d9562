"""Missing markers: the partitions that a decided transaction waits for, and when they are asked again.

This is not in the log: a decision without its completion implies it. After a restart every partition is asked again and finds the
marker already written. A partition is asked until it answers; one that refuses is asked again a little later, forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple, Protocol

from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.coordinator.transaction.settings import NEVER_MS
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

FIRST_PAUSE_MS = 20
LONGEST_PAUSE_MS = 1_000
UNANSWERED_MS = 30_000
"""A partition without an answer for this long is asked again; markers may be sent twice."""

DONE = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID)
"""The marker is safe, or the cluster no longer has the partition, so that the marker is not needed."""


class WriteMarkers(NamedTuple):
    """One decision for some partitions. ``round`` comes back with each answer; answers to an earlier decision are ignored."""

    transactional_id: str
    round: int
    producer_id: int
    producer_epoch: int
    committed: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


class MarkerAnswer(NamedTuple):
    """The answer of one partition. UNKNOWN_TOPIC_ID: the cluster no longer has the partition."""

    transactional_id: str
    round: int
    partition: TopicPartition
    error: ErrorCode


class MarkerSender(Protocol):
    """Carries markers to the leaders of partitions, on this broker and others."""

    def __call__(self, markers: WriteMarkers, coordinator_epoch: int) -> None:
        """Starts sending; each partition is answered by a MarkerAnswer at some point, or never."""
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
        """When the next partition has to be asked; there must be one."""
        return min(self.due.values())

    def answered(self, partition: TopicPartition, error: ErrorCode, now_ms: int) -> int | None:
        """Takes an answer to this round. Returns when the partition is to be asked again, or None."""
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
        """The partitions to ask now; they have UNANSWERED_MS to answer."""
        found = [partition for partition, due_ms in self.due.items() if due_ms <= now_ms]
        for partition in found:
            self.due[partition] = now_ms + UNANSWERED_MS
        return found


class MissingMarkers:
    """The decided transactions of a coordinator whose markers are missing, each with the round of its decision."""

    __slots__ = ("_outstanding", "_rounds", "next_ms")

    def __init__(self) -> None:
        self._outstanding: dict[str, Outstanding] = {}
        self._rounds = 0
        self.next_ms = NEVER_MS
        """When ``take_due`` may return something, or earlier."""

    @property
    def count(self) -> int:
        """Partitions that have not confirmed the marker of a decided transaction."""
        return sum(len(outstanding.due) for outstanding in self._outstanding.values())

    @property
    def transactional_ids(self) -> Set[str]:
        return self._outstanding.keys()

    def partitions(self, transactional_id: str) -> Set[TopicPartition] | None:
        """The partitions that an id waits for; None when it is not decided."""
        outstanding = self._outstanding.get(transactional_id)
        return None if outstanding is None else outstanding.due.keys()

    def new_round(self) -> int:
        """The round of one more decision."""
        self._rounds += 1
        return self._rounds

    def expect(self, transactional_id: str, round_: int, partitions: Iterable[TopicPartition], due_ms: int) -> None:
        """Waits for the markers of a decision; the partitions are asked again at ``due_ms``."""
        self._outstanding[transactional_id] = Outstanding(round_, partitions, due_ms)
        self.next_ms = min(self.next_ms, due_ms)

    def forget(self, transactional_id: str) -> None:
        """The transaction is complete, or its id is gone."""
        self._outstanding.pop(transactional_id, None)

    def clear(self) -> None:
        self._outstanding.clear()
        self.next_ms = NEVER_MS

    def answered(self, answer: MarkerAnswer, now_ms: int) -> bool:
        """Takes an answer; answers to an earlier decision are ignored. True after the last marker of the transaction."""
        outstanding = self._outstanding.get(answer.transactional_id)
        if outstanding is None or outstanding.round != answer.round:
            return False
        due_ms = outstanding.answered(answer.partition, answer.error, now_ms)
        if due_ms is not None:
            self.next_ms = min(self.next_ms, due_ms)
        return not outstanding.due

    def take_due(self, now_ms: int) -> list[tuple[str, int, list[TopicPartition]]]:
        """(transactional id, round, partitions to ask now), without partitions for an id whose markers are all written but whose
        completion is not recorded yet."""
        self.next_ms = NEVER_MS
        found = []
        for transactional_id, outstanding in self._outstanding.items():
            due = outstanding.take_due(now_ms)
            if due or not outstanding.due:
                found.append((transactional_id, outstanding.round, due))
            if outstanding.due:
                self.next_ms = min(self.next_ms, outstanding.next_due())
        return found
