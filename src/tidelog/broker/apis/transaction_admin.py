"""Looking at transactions: DescribeTransactions and ListTransactions, sent by kafka-transactions."""

from __future__ import annotations

from tidelog.broker.context import Context
from tidelog.coordinator.group.subscription_regex import InvalidRegex
from tidelog.coordinator.transaction import describing
from tidelog.coordinator.transaction.describing import Filters
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from tidelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def describe_transactions(ctx: Context, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Transactional ids whose coordinator is this broker. Errors by id: 14, 16, 42 for the empty one, 105."""
    return DescribeTransactionsResponse(transaction_states=[_described(ctx, each) for each in request.transactional_ids])


def _described(ctx: Context, transactional_id: str) -> TransactionState:
    shard = ctx.broker.transactions.find(transactional_id)
    if isinstance(shard, ErrorCode) and transactional_id:
        return TransactionState(transactional_id=transactional_id, error_code=shard)
    if isinstance(shard, ErrorCode):
        return TransactionState(transactional_id="", error_code=ErrorCode.INVALID_REQUEST)
    assert shard.machine is not None
    return describing.describe(shard.machine, transactional_id)


def list_transactions(ctx: Context, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """Those whose coordinator is this broker. v1 filters by duration (KIP-994), v2 by a pattern in RE2's syntax (KIP-1152).
    Errors: 14, 128."""
    machines = ctx.broker.transactions.machines()
    filters = Filters(
        request.state_filters, request.producer_id_filters, request.duration_filter, request.transactional_id_pattern
    )
    if isinstance(machines, ErrorCode):
        return ListTransactionsResponse(error_code=machines)
    try:
        found = describing.list_matching(machines, filters, ctx.now_ms())
    except InvalidRegex:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return ListTransactionsResponse(unknown_state_filters=filters.unknown_states(), transaction_states=found)
