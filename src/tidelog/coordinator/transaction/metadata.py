"""TransactionMetadata: the state of one transactional id and its changes, with Kafka's fields and rules.

The values are immutable; each function returns the contents of the next record. ``transitions`` decides whether a request is
allowed; this module asserts that the change is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidelog.coordinator.transaction.state import AT_REST, ENDING, MOVES, TransactionState
from tidelog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition

LAST_EPOCH = 32_767
"""Reserved for fencing: no producer gets it."""
TV0 = 0
TV2 = 2
"""Levels of transaction.version: the protocol before the second part of KIP-890, and since."""

Partitions = Mapping[TopicPartition, None]
"""In the order in which they joined."""


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """One transactional id. Times in ms since the epoch; -1 for none."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_ms: int
    start_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change; distinguishes a retry across an epoch overflow from another producer."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after the transaction is complete, when the epochs of the current one are used up."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the last bump. It is not in the log: after a restart a retry across it is refused, as in Kafka."""
    client_version: int = TV0
    """The transaction.version that the client of the current transaction uses."""
    partitions: Partitions = field(default_factory=dict)

    @property
    def epoch_exhausted(self) -> bool:
        """Whether the next bump would use the last epoch; then the producer gets a new id instead."""
        return self.producer_epoch >= LAST_EPOCH - 1

    @property
    def ending(self) -> bool:
        return self.state in ENDING

    @property
    def at_rest(self) -> bool:
        return self.state in AT_REST

    def timed_out(self, now_ms: int) -> bool:
        """Whether its transaction has exceeded its timeout."""
        return self.state is TransactionState.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def _moved(self, state: TransactionState, **changes: Any) -> TransactionMetadata:
        assert state in MOVES[self.state], f"{self.transactional_id}: {self.state.name} -> {state.name} is no legal move: {self}"
        moved = replace(self, state=state, previous_producer_id=self.producer_id, **changes)
        assert moved.producer_id >= 0 and 0 <= moved.producer_epoch <= LAST_EPOCH, f"{self} -> {moved}"
        assert moved.producer_id != self.producer_id or moved.producer_epoch >= self.producer_epoch, f"{self} -> {moved}"
        return moved

    # -- InitProducerId ------------------------------------------------------------------------------------------------------

    def with_next_epoch(self, timeout_ms: int, *, last_epoch: int, now_ms: int) -> TransactionMetadata:
        """Empty, with the next epoch; a retry with ``last_epoch`` gets the same answer."""
        assert not self.epoch_exhausted, f"{self} has no epoch left"
        return self._emptied(timeout_ms, now_ms, producer_epoch=self.producer_epoch + 1, last_producer_epoch=last_epoch)

    def with_same_epoch(self, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """Empty, for a retry whose answer was lost."""
        return self._emptied(timeout_ms, now_ms)

    def with_new_id(self, producer_id: int, timeout_ms: int, *, last_epoch: int, now_ms: int) -> TransactionMetadata:
        """Empty, with another producer id, from epoch 0."""
        return self._emptied(timeout_ms, now_ms, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last_epoch)

    def _emptied(self, timeout_ms: int, now_ms: int, **changes: Any) -> TransactionMetadata:
        changes |= {"timeout_ms": timeout_ms, "last_update_ms": now_ms, "start_ms": -1, "partitions": {}}
        return self._moved(TransactionState.EMPTY, **changes)

    # -- AddPartitionsToTxn --------------------------------------------------------------------------------------------------

    def with_partitions(self, added: Iterable[TopicPartition], *, client_version: int, now_ms: int) -> TransactionMetadata:
        """Ongoing, with further partitions; the first ones begin the transaction."""
        return self._moved(
            TransactionState.ONGOING,
            partitions={**self.partitions, **dict.fromkeys(added)},
            start_ms=now_ms if self.at_rest else self.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    # -- EndTxn --------------------------------------------------------------------------------------------------------------

    def prepared(
        self, *, commit: bool, client_version: int, now_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionMetadata:
        """Decided by the client. From transaction.version 2 the decision bumps the epoch, so that no request of this
        transaction can be taken for the next one (KIP-890)."""
        changes: dict[str, Any] = {"start_ms": now_ms} if self.at_rest else {}
        if client_version >= TV2:
            changes |= {"producer_epoch": self.producer_epoch + 1, "last_producer_epoch": self.producer_epoch}
        return self._moved(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            next_producer_id=next_producer_id,
            last_update_ms=now_ms,
            client_version=client_version,
            **changes,
        )

    def fenced(self, *, server_version: int, now_ms: int) -> TransactionMetadata:
        """Aborted by the coordinator: the epoch is bumped once (KAFKA-19367), and below transaction.version 2 no retry of the
        producer is honoured."""
        return self._moved(
            TransactionState.PREPARE_ABORT,
            # The log of another broker may hold an open transaction at the last epoch; it can be aborted, but not fenced.
            producer_epoch=min(self.producer_epoch + 1, LAST_EPOCH),
            last_producer_epoch=self.producer_epoch if server_version >= TV2 else NO_PRODUCER_EPOCH,
            next_producer_id=NO_PRODUCER_ID,
            last_update_ms=now_ms,
            client_version=server_version if server_version >= TV2 else TV0,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """All markers are written."""
        commit = self.state is TransactionState.PREPARE_COMMIT
        changes: dict[str, Any] = {}
        if self.client_version >= TV2 and self.next_producer_id != NO_PRODUCER_ID:
            changes = {"producer_id": self.next_producer_id, "producer_epoch": 0}
        return self._moved(
            TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
            next_producer_id=NO_PRODUCER_ID,
            partitions={},
            last_update_ms=now_ms,
            **changes,
        )


def new_transactional_id(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    """Before its first record: without an epoch, so that the first bump gives 0."""
    return TransactionMetadata(
        transactional_id, producer_id, NO_PRODUCER_EPOCH, timeout_ms, TransactionState.EMPTY, last_update_ms=now_ms
    )
