"""Transactions: listing, description, and forced abort (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.client.admin.results import TransactionDescription, TransactionListing
from tidelog.client.admin.topics import brokers, check
from tidelog.client.calls import TRANSACTION, Ask, Call, Coordinator, Each, Locate, Node, VersionOf
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode

if TYPE_CHECKING:
    from tidelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_NEVER = -1
_DURATION_FROM, _PATTERN_FROM = 1, 2
"""Versions of ListTransactions that have the filters."""


def list_all(
    *, duration_ms: int = _NEVER, pattern: str | None = None, producer_ids: Sequence[int] = ()
) -> Call[list[TransactionListing]]:
    """The transactional ids of all coordinators. KafkaError.

    Filters: open for ``duration_ms`` at least (KIP-994), a regular expression for the whole id (KIP-1152), producer ids.
    UnsupportedByBroker where a broker is too old for one.
    """
    from tidelog.protocol.messages.list_transactions import ListTransactionsRequest

    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids), duration_filter=duration_ms, transactional_id_pattern=pattern
    )
    there = yield from brokers()
    found: list[list[TransactionListing]] = yield Each([_at(broker_id, request) for broker_id in there])
    return [each for part in found for each in part]


def _at(broker_id: int, request: ListTransactionsRequest) -> Call[list[TransactionListing]]:
    filters = (
        (request.duration_filter >= 0, _DURATION_FROM, "duration"),
        (request.transactional_id_pattern is not None, _PATTERN_FROM, "pattern"),
    )
    if any(given for given, _, _ in filters):
        version = yield VersionOf(request.API_KEY, Node(broker_id))
        for given, needed, name in filters:
            if given and version < needed:
                raise UnsupportedByBroker(
                    f"Broker {broker_id} serves ListTransactions v{version}; a filter by {name} needs v{needed}. Leave it out."
                )
    response: ListTransactionsResponse = yield Ask(request, Node(broker_id), code_of=lambda answer: int(answer.error_code))
    check(response.error_code)
    return [
        TransactionListing(each.transactional_id, broker_id, each.producer_id, each.transaction_state)
        for each in response.transaction_states
    ]


def describe(transactional_id: str) -> Call[TransactionDescription]:
    """The transaction of a transactional id. KafkaError (TRANSACTIONAL_ID_NOT_FOUND)."""
    from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest

    to = Coordinator(transactional_id, TRANSACTION)
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    response = yield Ask(request, to, code_of=lambda answer: int(answer.transaction_states[0].error_code))
    (found,) = response.transaction_states
    check(found.error_code)
    node_id, _, _ = yield Locate(to)
    started = found.transaction_start_time_ms
    return TransactionDescription(
        transactional_id,
        node_id,
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        None if started == _NEVER else started,
        tuple(sorted((topic.topic, index) for topic in found.topics for index in topic.partitions)),
    )


def force_terminate(transactional_id: str, *, timeout_ms: int = 60_000) -> Call[None]:
    """Fence the producer of a transactional id, which aborts its open transaction. KafkaError."""
    from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest

    yield from describe(transactional_id)  # InitProducerId would create an unknown id
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    response = yield Ask(request, Coordinator(transactional_id, TRANSACTION), code_of=lambda answer: _passing(answer.error_code))
    check(response.error_code)


def _passing(code: int) -> int:
    """Retry while the transaction is being completed."""
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code == ErrorCode.CONCURRENT_TRANSACTIONS else code
