"""Asking the coordinator machine that owns a key, and waiting for what it says."""

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
    """``respond(reply)`` of the machine that owns ``key``, at once when it is there at once; ``refuse(error)`` when no shard can
    say: COORDINATOR_LOAD_IN_PROGRESS (14), COORDINATOR_NOT_AVAILABLE (15) or NOT_COORDINATOR (16), which clients retry.
    ``writes``: the request may have to be recorded."""
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
    """The same for a shard that is at hand, or was: while others were asked its leadership may have gone."""
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
    """A call that only looks at the machine; its answer waits for what the machine knows to be safe."""
    return lambda machine, token, _: Outcome(replies=(Reply(token, look(machine)),))


async def ask_every(ctx: Context, shards: Shards[M], look: Callable[[M], list[T]]) -> list[T] | ErrorCode:
    """What ``look`` finds in all machines of this broker; the error of the first shard that cannot say (14, 15, 16)."""
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
    """Nobody waits for these any more; those that have come are left alone."""
    for answer in answers:
        if isinstance(answer, Coroutine):
            answer.close()
