"""Requests of other nodes to the quorum member of this process, from the frame's arrival to the machine's reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tidelog.controller.quorum_member import QuorumMember
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import Token
from tidelog.raft.effects import Effect
from tidelog.raft.voters import VoterSet
from tidelog.server.runtime import LoopRuntime


class QuorumRequests:
    """Implements ``broker.node.Quorum``. ``do`` passes an event to the machine."""

    def __init__(self, member: QuorumMember, runtime: LoopRuntime, do: Callable[[Callable[[], list[Effect]]], None]) -> None:
        self._member = member
        self._runtime = runtime
        self._do = do
        self._tokens = 0
        self._asking: dict[int, asyncio.Future[Any]] = {}
        self._closed = False

    async def ask(self, api_key: int, version: int, listener: str, request: Any) -> Any:
        """The answer to another node's request. KafkaError BROKER_NOT_AVAILABLE when this controller has stopped."""
        if self._closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this controller has stopped")
        self._tokens += 1
        token = Token(self._tokens)
        future = self._asking[token] = self._runtime.promise()
        machine = self._member.machine
        self._do(lambda: machine.request(token, api_key, version, listener, request, self._runtime.real_ms()))
        try:
            return await future
        finally:
            if self._asking.pop(token, None) is not None and not future.done():
                machine.abandon(token)

    @property
    def voters(self) -> VoterSet:
        """The voters, as far as this replica knows."""
        return self._member.machine.voters

    @property
    def leader_id(self) -> int:
        """-1 while unknown."""
        return self._member.machine.leader_id

    def reply(self, token: Token, response: Any) -> None:
        """Answers a request, unless its connection has closed."""
        future = self._asking.pop(token, None)
        if future is not None and not future.done():
            future.set_result(response)

    def replying(self, token: Token) -> Callable[[Any], list[Effect]]:
        """``reply`` as the end of a job: without further effects."""

        def end(response: Any) -> list[Effect]:
            self.reply(token, response)
            return []

        return end

    def close(self, error: KafkaError) -> None:
        """Fails all requests, and those to come."""
        self._closed = True
        waiting = list(self._asking.values())
        self._asking.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
