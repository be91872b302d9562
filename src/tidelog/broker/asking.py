"""Asking the coordinator machine that owns a key, and waiting for what it says."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidelog.broker.context import Answer, Context
from tidelog.coordinator.shard import RecordMachine, Shard, Waiting
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Token

M = TypeVar("M", bound=RecordMachine)


def ask(
    ctx: Context,
    shards: Shards[M],
    key: str,
    call: Callable[[M, Token, int], Outcome],
    respond: Callable[[Any], Answer],
    refuse: Callable[[ErrorCode], Answer],
) -> Answer | Coroutine[Any, Any, Answer]:
    """``respond(reply)`` of the machine that owns ``key``, at once when it is there at once; ``refuse(error)`` when no shard can
    say: COORDINATOR_LOAD_IN_PROGRESS (14) or NOT_COORDINATOR (16), which clients retry."""
    shard = shards.find(key)
    if isinstance(shard, ErrorCode):
        return refuse(shard)
    token, waiting = shards.ask(shard, call)
    if waiting.done:
        return refuse(waiting.error) if waiting.error else respond(waiting.response)
    return _wait(ctx, shard, token, waiting, respond, refuse)


async def _wait(
    ctx: Context,
    shard: Shard[M],
    token: Token,
    waiting: Waiting,
    respond: Callable[[Any], Answer],
    refuse: Callable[[ErrorCode], Answer],
) -> Answer:
    try:
        await ctx.wait(waiting)
    finally:
        shard.abandon(token)
    return refuse(waiting.error) if waiting.error else respond(waiting.response)
