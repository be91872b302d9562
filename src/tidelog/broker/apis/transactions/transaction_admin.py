"""DescribeTransactions and ListTransactions, sent by kafka-transactions."""

from __future__ import annotations

from collections.abc import Coroutine

from tidelog.broker import coordinator_calls
from tidelog.broker.authorization import allowed, allows
from tidelog.broker.node import BrokerContext
from tidelog.coordinator.group.consumer.subscription_regex import InvalidRegex
from tidelog.coordinator.transaction import describing
from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
from tidelog.coordinator.transaction.describing import Filters
from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from tidelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


async def describe_transactions(ctx: BrokerContext, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describes transactional ids that this broker coordinates. Errors by id: 14, 15, 16, 42 for the empty one, 53, 105. Topics
    that the client may not describe are left out."""
    return DescribeTransactionsResponse(transaction_states=[await _described(ctx, each) for each in request.transactional_ids])


async def _described(ctx: BrokerContext, transactional_id: str) -> TransactionState:
    def refuse(error: ErrorCode) -> TransactionState:
        told = error if transactional_id else ErrorCode.INVALID_REQUEST
        return TransactionState(transactional_id=transactional_id, error_code=told)

    if not allows(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return TransactionState(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    answer = coordinator_calls.ask(
        ctx,
        ctx.node.transactions,
        transactional_id,
        coordinator_calls.looked_up(lambda machine: describing.describe(machine, transactional_id)),
        lambda described: described,
        refuse,
        writes=False,
    )
    state = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(state, TransactionState)
    visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.topic for topic in state.topics], quiet=True)
    state.topics = [topic for topic in state.topics if topic.topic in visible]
    return state


async def list_transactions(ctx: BrokerContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """The transactions that this broker coordinates. v1 filters by duration (KIP-994), v2 by a pattern in RE2's syntax
    (KIP-1152). Only those whose id the client may describe are listed. Errors: 14, 15, 16, 128."""
    filters = Filters(
        request.state_filters, request.producer_id_filters, request.duration_filter, request.transactional_id_pattern
    )
    transactions = await coordinator_calls.ask_every(ctx, ctx.node.transactions, _known)
    if isinstance(transactions, ErrorCode):
        return ListTransactionsResponse(error_code=transactions)
    try:
        found = describing.list_matching(transactions, filters, ctx.node.runtime.even_ms())
    except InvalidRegex:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    ids = [each.transactional_id for each in found]
    visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, ids, quiet=True)
    found = [each for each in found if each.transactional_id in visible]
    return ListTransactionsResponse(unknown_state_filters=filters.unknown_states(), transaction_states=found)


def _known(machine: TransactionCoordinator) -> list[TransactionMetadata]:
    return list(machine.transactions.values())
