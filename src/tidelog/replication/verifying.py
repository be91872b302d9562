"""A partition's half of asking a transaction's coordinator before the transaction's first batch (KIP-890).

Decided here: when nobody needs to be asked, and what is kept of a question that was answered with no. What a proof is worth:
``storage.verification``; the question itself: ``broker.transaction_verification``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode
from tidelog.replication.partition import refused
from tidelog.storage.appending import AppendResult
from tidelog.storage.verification import Verification

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
    """What to hold while the coordinator is asked; None where the producer's transaction is open already, or nothing can be
    appended anyway."""
    log = partition.log
    if log is None or not partition.is_leader:
        return None
    return log.producers.begin_verification(
        producer_id, epoch, sequence, starts_at_zero=starts_at_zero, transactional_id=transactional_id, now_ms=now_ms
    )


def refuse_verification(partition: Partition, producer_id: int, proof: Verification, error: ErrorCode, size: int) -> AppendResult:
    """The coordinator did not confirm the transaction of a batch of ``size`` bytes. Where the producer will ask again, the order
    of its first batches is kept. After any other no there is nothing to come: a late batch of the transaction before would
    only stand in the way of the next one's, and of producers that nobody knows memory would fill."""
    proof.served()
    if partition.log is not None and error not in _ASKED_AGAIN:
        partition.log.producers.verifications.abandon(producer_id, proof)
    return partition.count_refused(size, refused(error))
