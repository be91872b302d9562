"""What a request may do to a transactional id: Kafka 4.3's answers, case by case.

Each function takes the current state and the request and returns the next TransactionMetadata, or the error (NONE: no change
needed). Errors are those of the newest API versions; the handlers translate them for older ones. Sources: KIP-98, KIP-360 (bumps
on request), KIP-447, KIP-890 (transaction.version 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.coordinator.transaction.metadata import LAST_EPOCH, TV2, TransactionMetadata
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition

Decision = TransactionMetadata | ErrorCode
NewId = Callable[[], int | None]
"""A new producer id; None while none is available."""


class Producer(NamedTuple):
    """The producer as the client states it."""

    producer_id: int
    epoch: int


# -- InitProducerId ----------------------------------------------------------------------------------------------------------


def init(
    known: TransactionMetadata, expected: Producer | None, timeout_ms: int, *, new_id: NewId, server_version: int, now_ms: int
) -> Decision:
    """InitProducerId with a transactional id. An open transaction is aborted first, which bumps the epoch once (KIP-890); the
    client asks again until the abort is complete.

    ``expected`` (KIP-360) is the id and epoch that the client had. PRODUCER_FENCED when another producer has taken over since;
    COORDINATOR_LOAD_IN_PROGRESS while no producer id is available.
    """
    if expected is not None and not _may_continue(known, expected):
        return ErrorCode.PRODUCER_FENCED
    if known.ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is TransactionState.ONGOING:
        return known.fenced(server_version=server_version, now_ms=now_ms)
    if known.epoch_exhausted and (expected is None or expected.epoch == known.producer_epoch):
        fresh = new_id()
        if fresh is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        last_epoch = NO_PRODUCER_EPOCH if expected is None else known.producer_epoch
        return known.with_new_id(fresh, timeout_ms, last_epoch=last_epoch, now_ms=now_ms)
    if expected is None:
        return known.with_next_epoch(timeout_ms, last_epoch=NO_PRODUCER_EPOCH, now_ms=now_ms)
    if known.producer_epoch in {NO_PRODUCER_EPOCH, expected.epoch}:
        return known.with_next_epoch(timeout_ms, last_epoch=known.producer_epoch, now_ms=now_ms)
    if expected.epoch == known.last_producer_epoch:
        # The answer to the bump was lost; no other client asked since, for that would have reset the last epoch to -1.
        return known.with_same_epoch(timeout_ms, now_ms)
    return ErrorCode.PRODUCER_FENCED


def _may_continue(known: TransactionMetadata, expected: Producer) -> bool:
    """Checks the id, not the epoch: unset, the same, or the previous one when its epochs are used up."""
    return (
        known.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == known.producer_id
        or (expected.producer_id == known.previous_producer_id and expected.epoch >= LAST_EPOCH - 1)
    )


# -- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------------------------------------


def add_partitions(
    known: TransactionMetadata | None,
    producer: Producer,
    partitions: Sequence[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Decision:
    """Partitions join the transaction, which begins with the first ones."""
    error = _stranger(known, producer)
    if error is not ErrorCode.NONE:
        return error
    assert known is not None
    if known.ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is TransactionState.ONGOING and all(partition in known.partitions for partition in partitions):
        return ErrorCode.NONE
    return known.with_partitions(partitions, client_version=client_version, now_ms=now_ms)


def verify_partitions(
    known: TransactionMetadata | None, producer: Producer, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Whether the partitions belong to the transaction (KIP-890); nothing changes."""
    error = _stranger(known, producer)
    if error is not ErrorCode.NONE:
        return dict.fromkeys(partitions, error)
    assert known is not None
    if known.ending:
        return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _stranger(known: TransactionMetadata | None, producer: Producer) -> ErrorCode:
    if known is None or known.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if _is_current(known, producer) else ErrorCode.PRODUCER_FENCED


def _is_current(known: TransactionMetadata, producer: Producer) -> bool:
    """The last epoch is never given to a producer."""
    return known.producer_epoch == producer.epoch < LAST_EPOCH


# -- EndTxn ------------------------------------------------------------------------------------------------------------------


def end(
    known: TransactionMetadata | None, producer: Producer, *, commit: bool, client_version: int, new_id: NewId, now_ms: int
) -> Decision:
    """EndTxn of a client that uses transaction.version ``client_version``."""
    if known is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if client_version >= TV2:
        return _end_with_bump(known, producer, commit=commit, client_version=client_version, new_id=new_id, now_ms=now_ms)
    error = _stranger(known, producer)
    if error is not ErrorCode.NONE:
        return error
    if known.state is TransactionState.ONGOING:
        return known.prepared(commit=commit, client_version=client_version, now_ms=now_ms)
    return _again(known.state, commit=commit)


def _end_with_bump(
    known: TransactionMetadata, producer: Producer, *, commit: bool, client_version: int, new_id: NewId, now_ms: int
) -> Decision:
    """Since KIP-890 the same epoch means the next transaction, and the previous epoch a retry of the last decision. An abort
    without a transaction succeeds, because the client may not know whether its partition ever joined."""
    # An older client's decision does not bump the epoch, so the previous epoch belongs to a fenced producer, which must not take
    # the commit for its own (Apache Kafka answers it that the commit succeeded).
    bumped = (
        known.producer_id == producer.producer_id and known.producer_epoch == producer.epoch + 1 and known.client_version >= TV2
    )
    overflowed = (
        known.previous_producer_id == producer.producer_id and producer.epoch == LAST_EPOCH - 1 and known.producer_epoch == 0
    )
    if known.producer_id != producer.producer_id and not overflowed:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    current = _is_current(known, producer)
    if known.ending and current:
        # The client knows of the decision and ends the next transaction before this one is complete. Kafka fences it.
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if not _epoch_fits(known, current=current, bumped=bumped, overflowed=overflowed):
        return ErrorCode.PRODUCER_FENCED
    if known.ending or (known.at_rest and (bumped or overflowed)):
        return _again(known.state, commit=commit)
    if known.at_rest and commit:
        return ErrorCode.INVALID_TXN_STATE
    next_id = NO_PRODUCER_ID
    if known.epoch_exhausted:
        fresh = new_id()
        if fresh is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        next_id = fresh
    return known.prepared(commit=commit, client_version=client_version, now_ms=now_ms, next_producer_id=next_id)


def _epoch_fits(known: TransactionMetadata, *, current: bool, bumped: bool, overflowed: bool) -> bool:
    if known.ending:
        return bumped
    if known.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        return current or bumped or overflowed
    return current


def _again(state: TransactionState, *, commit: bool) -> ErrorCode:
    """EndTxn for a decided transaction: NONE when the decision is the same and complete, CONCURRENT_TRANSACTIONS while it is
    not."""
    decided = commit if state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT) else not commit
    if state is TransactionState.EMPTY or not decided:
        return ErrorCode.INVALID_TXN_STATE
    if state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        return ErrorCode.NONE
    return ErrorCode.CONCURRENT_TRANSACTIONS
