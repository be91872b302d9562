"""A partition's part in verifying a transaction with its coordinator before the transaction's first batch (KIP-890).

Decided here: when no verification is needed, and what is kept after the coordinator said no. What a proof is worth:
``storage.verification_guard``; the question itself: ``broker.transaction_verification``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode
from tidelog.replication.acks_and_min_isr import refused
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.verification_guard import Verification

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition

_ASKED_AGAIN = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


def begin_verification(
    partition: Partition,
    producer_id: int,
    epoch: int,
    sequence: int,
    *,
    starts_at_zero: bool,
    transactional_id: str,
    now_ms: int,
) -> Verification | None:
    """The proof to hold while the coordinator is asked; None when the producer's transaction is already open, or the append
    would fail anyway."""
    log = partition.log
    if log is None or not partition.is_leader:
        return None
    return log.producers.begin_verification(
        producer_id, epoch, sequence, starts_at_zero=starts_at_zero, transactional_id=transactional_id, now_ms=now_ms
    )


def refuse_verification(partition: Partition, producer_id: int, proof: Verification, error: ErrorCode, size: int) -> AppendResult:
    """The coordinator did not confirm the transaction of a batch of ``size`` bytes. If the producer will retry, the order of
    its first batches is kept. Otherwise nothing more will arrive: a late batch of the previous transaction would only block
    those of the next, and unknown producers would fill the memory."""
    proof.served()
    if partition.log is not None and error not in _ASKED_AGAIN:
        partition.log.producers.verifications.abandon(producer_id, proof)
    partition.stats.refused(size)
    return refused(error)
