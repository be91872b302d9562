"""The administrators' view of transactional ids: DescribeTransactions, ListTransactions, and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidelog.coordinator.group.consumer import subscription_regex
from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.coordinator.transaction.state import BY_NAME, NAMES, TransactionState
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import describe_transactions, list_transactions


def describe(machine: TransactionCoordinator, transactional_id: str) -> describe_transactions.TransactionState:
    """One transactional id. TRANSACTIONAL_ID_NOT_FOUND (105), INVALID_REQUEST for an empty id, COORDINATOR_NOT_AVAILABLE when
    its record cannot be read."""
    refusal = machine.refusal(transactional_id)
    if refusal is not None:
        return describe_transactions.TransactionState(transactional_id=transactional_id, error_code=refusal)
    known = machine.transactions.get(transactional_id)
    if known is None:
        return describe_transactions.TransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    topics: dict[str, describe_transactions.TopicData] = {}
    for topic, partition in known.partitions:
        topics.setdefault(topic, describe_transactions.TopicData(topic=topic)).partitions.append(partition)
    return describe_transactions.TransactionState(
        transactional_id=transactional_id,
        transaction_state=NAMES[known.state],
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=list(topics.values()),
    )


class Filters(NamedTuple):
    """The filters of ListTransactions; empty sequences and a negative duration match all.

    ``longer_than_ms``: how long ago the transaction began (KIP-994); ids without a transaction count as very old, as in Kafka.
    """

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    longer_than_ms: int = -1
    pattern: str | None = None

    def unknown_states(self) -> list[str]:
        """Names that are not states."""
        return [name for name in self.states if name not in BY_NAME]


def list_matching(
    transactions: Iterable[TransactionMetadata], filters: Filters, now_ms: int
) -> list[list_transactions.TransactionState]:
    """The matching ``transactions``. ``subscription_regex.InvalidRegex`` for a pattern that cannot be read."""
    states = {BY_NAME[name] for name in filters.states if name in BY_NAME}
    producers = set(filters.producer_ids)
    found = [
        known
        for known in transactions
        if (not producers or known.producer_id in producers)
        and (not filters.states or known.state in states)
        and (filters.longer_than_ms < 0 or now_ms - known.start_ms > filters.longer_than_ms)
    ]
    if filters.pattern:
        fitting = subscription_regex.resolve(filters.pattern, [known.transactional_id for known in found])
        found = [known for known in found if known.transactional_id in fitting]
    return [
        list_transactions.TransactionState(
            transactional_id=known.transactional_id, producer_id=known.producer_id, transaction_state=NAMES[known.state]
        )
        for known in found
    ]


def count_by_state(machines: Iterable[TransactionCoordinator]) -> dict[TransactionState, int]:
    """The number of ids in each state."""
    counts = dict.fromkeys(TransactionState, 0)
    for machine in machines:
        for known in machine.transactions.values():
            counts[known.state] += 1
    return counts


def open_transactions(machines: Iterable[TransactionCoordinator]) -> list[TransactionMetadata]:
    """Transactions that are open or being completed, the oldest first."""
    found = [known for machine in machines for known in machine.transactions.values() if not known.at_rest]
    return sorted(found, key=_age_then_name)


def _age_then_name(known: TransactionMetadata) -> tuple[int, str]:
    return known.start_ms, known.transactional_id
