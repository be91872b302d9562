"""Calls the coordinator machine that owns a key and waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from tidelog.broker.request import Context
from tidelog.coordinator.shard import RecordMachine, Shard, Waiting
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Reply, Token

M = TypeVar("M", bound=RecordMachine)
T = TypeVar("T")
R = TypeVar("R")


def ask(
    ctx: Context,
    shards: Shards[M],
    key: str,
    call: Callable[[M, Token, int], Outcome],
    respond: Callable[[Any], R],
    refuse: Callable[[ErrorCode], R],
    *,
    writes: bool = True,
) -> R | Coroutine[Any, Any, R]:
    """``respond(reply)`` of the machine that owns ``key``, directly if it is ready; ``refuse(error)`` when no shard can
    answer: COORDINATOR_LOAD_IN_PROGRESS (14), COORDINATOR_NOT_AVAILABLE (15) or NOT_COORDINATOR (16), which clients retry.
    ``writes``: the request may write a record."""
    shard = shards.find(key, writes=writes)
    if isinstance(shard, ErrorCode):
        return refuse(shard)
    return ask_shard(ctx, shards, shard, call, respond, refuse)


def ask_shard(
    ctx: Context,
    shards: Shards[M],
    shard: Shard[M],
    call: Callable[[M, Token, int], Outcome],
    respond: Callable[[Any], R],
    refuse: Callable[[ErrorCode], R],
) -> R | Coroutine[Any, Any, R]:
    """Like ``ask``, for a known shard. It may have lost its leadership while other shards were asked."""
    if shard.machine is None:
        return refuse(ErrorCode.NOT_COORDINATOR)
    token, waiting = shards.ask(shard, call)
    if waiting.done:
        return refuse(waiting.error) if waiting.error else respond(waiting.response)
    return _wait(ctx, shard, token, waiting, respond, refuse)


async def _wait(
    ctx: Context,
    shard: Shard[M],
    token: Token,
    waiting: Waiting,
    respond: Callable[[Any], R],
    refuse: Callable[[ErrorCode], R],
) -> R:
    try:
        await ctx.wait(waiting)
    finally:
        shard.abandon(token)
    return refuse(waiting.error) if waiting.error else respond(waiting.response)


def looked_up(look: Callable[[M], Any]) -> Callable[[M, Token, int], Outcome]:
    """A read-only call; its answer waits until the state that it read is safe."""
    return lambda machine, token, _: Outcome(replies=(Reply(token, look(machine)),))


async def ask_every(ctx: Context, shards: Shards[M], look: Callable[[M], list[T]]) -> list[T] | ErrorCode:
    """The combined results of ``look`` on all machines of this broker; the error of the first shard that cannot answer (14,
    15, 16)."""
    loaded = shards.loaded()
    if isinstance(loaded, ErrorCode):
        return loaded
    call = looked_up(look)
    found: list[T] = []
    for shard in loaded:
        answer = ask_shard(ctx, shards, shard, call, lambda reply: reply, lambda error: error)
        answer = await answer if isinstance(answer, Coroutine) else answer
        if isinstance(answer, ErrorCode):
            return answer
        found.extend(answer)
    return found


def close_all(answers: Iterable[object]) -> None:
    """Close the coroutines among ``answers``; finished ones need nothing."""
    for answer in answers:
        if isinstance(answer, Coroutine):
            answer.close()
