"""Deletes the states of a share group's partitions: for DeleteGroups, and for DeleteShareGroupOffsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from typing import Any

from tidelog.broker import coordinator_calls
from tidelog.broker.node import BrokerContext
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.model.machine import Outcome, Token

_NONE = ErrorCode.NONE


async def ask_shares(ctx: BrokerContext, group_id: str, call: Callable[[GroupCoordinator, Token], Outcome]) -> Any:
    """The coordinator's reply, or an error code."""
    answer = coordinator_calls.ask(
        ctx, ctx.node.groups, group_id, lambda machine, token, _: call(machine, token), lambda reply: reply, lambda error: error
    )
    return await answer if isinstance(answer, Coroutine) else answer


async def delete_states(
    ctx: BrokerContext, group_id: str, topic_ids: Collection[Uuid] | None
) -> dict[bytes, ErrorCode] | ErrorCode:
    """Deletes the states of a group's partitions, of these topics or of all (None): the error of each topic that had any; or the
    error of the group."""
    ordered = await ask_shares(ctx, group_id, lambda machine, token: machine.shares.begin_deletion(token, group_id, topic_ids))
    if isinstance(ordered, ErrorCode):
        return ordered
    from tidelog.coordinator.share.records import ShareKey  # imported by nodes with share groups only

    errors: dict[bytes, ErrorCode] = {}
    for topic_id in ordered.names:
        errors[topic_id] = _NONE
        for partition in sorted(ordered.partitions.get(topic_id, ())):
            answer = await ctx.node.share_partitions.store.delete(ShareKey(group_id, topic_id, partition))
            if answer.error is not _NONE and answer.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                errors[topic_id] = answer.error
    gone = frozenset(topic_id for topic_id, error in errors.items() if error is _NONE)
    if gone:
        answered = await ask_shares(ctx, group_id, lambda machine, token: machine.shares.forget(token, group_id, gone))
        if answered:
            return ErrorCode(answered)
    return errors
