"""Decisions of the active controller in this process: requests, timed work, signs of life.

A decision appends at the end of the log, so it is deferred until the effects of earlier events are done. Hundreds of deferred
decisions run one after another, and one sync covers them all. A request is answered when its records are committed; it fails with
NOT_CONTROLLER when the leadership ends before that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tidelog.broker.ports import ControllerHandler
from tidelog.controller.quorum_member import Pending, QuorumMember
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.raft.description import QuorumDescription, describe_quorum
from tidelog.raft.effects import Effect
from tidelog.server.runtime import LoopRuntime

TICK_S = 0.1
"""How often the active controller does its timed work: fencing silent brokers, balancing leaders."""


class EffectRunner(Protocol):
    """The runner of the Raft machine, as decisions need it."""

    @property
    def settled(self) -> bool:
        """Whether no effect is pending."""
        ...

    @property
    def refusal(self) -> str | None:
        """Why nothing is decided any more; None while it is."""
        ...

    def do(self, event: Callable[[], list[Effect]]) -> None:
        """Passes an event to the machine and carries out its effects. A KafkaError of ``event`` is raised."""
        ...

    def sync(self) -> None:
        """Begins a sync of the log if one is due."""
        ...


class ControllerRunner:
    """Implements ``broker.ports.Controller`` for the quorum member of this process."""

    def __init__(self, member: QuorumMember, runtime: LoopRuntime, effects: EffectRunner) -> None:
        self.deciding = False
        """Whether deferred decisions are being taken: the effects of each are carried out, the sync follows at the end."""
        self._member = member
        self._runtime = runtime
        self._effects = effects
        self._deferred: deque[Callable[[], None]] = deque()
        self._submitted: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._ticking: asyncio.TimerHandle | None = None

    # Requests

    def submit(self, handler: ControllerHandler, request: Any, version: Any = None, asker: Any = None) -> asyncio.Future[Any]:
        """Decides now if this is the active controller, answers once committed. See ``broker.ports.Controller``."""
        future = self._runtime.promise()
        refusal = self._effects.refusal
        if refusal is not None:
            future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, refusal))
        else:
            self._when_settled(lambda: self._decide(handler, request, future))
        return future

    def _decide(self, handler: ControllerHandler, request: Any, future: asyncio.Future[Any]) -> None:
        if future.done():
            return

        def decide() -> list[Effect]:
            pending, effects = self._member.submit(handler, request, self._runtime.now_ms(), self._runtime.real_ms())
            if pending.done:
                future.set_result(pending.response)
            else:
                self._submitted[pending.token] = future, pending.response
            return effects

        try:
            self._effects.do(decide)
        except KafkaError as error:
            future.set_exception(error)
        refusal = self._effects.refusal
        if refusal is not None and not future.done():
            future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, refusal))
        self._effects.sync()

    def describe_quorum(self) -> QuorumDescription | None:
        """Leader and voters as the leader sees them; None on any other node."""
        return describe_quorum(self._member.machine.quorum, self._runtime.now_ms() - self._runtime.real_ms())

    @property
    def kraft_version(self) -> int:
        """As far as this replica knows."""
        return self._member.machine.kraft_version

    # Time

    def start(self) -> None:
        """Begins the timed work."""
        self._tick()

    def stop(self) -> None:
        """Ends the timed work."""
        if self._ticking is not None:
            self._ticking.cancel()

    def tell_signs_of_life(self, idle_ms: int) -> None:
        """Appends a NoOp record after ``idle_ms`` without a write; called periodically."""
        self._when_settled(lambda: self._by_itself(lambda now, steady: self._member.sign_of_life(now, steady, idle_ms)))

    def _tick(self) -> None:
        if self._effects.refusal is not None:
            return
        self._ticking = self._runtime.loop.call_later(TICK_S, self._tick)
        if self._member.controller is not None:
            self._when_settled(self._look_at_time)

    def _look_at_time(self) -> None:
        self._by_itself(self._member.tick)
        if self._member.more_due and self._ticking is not None and self._effects.refusal is None:
            self._ticking.cancel()
            self._ticking = self._runtime.loop.call_later(0, self._tick)

    def _by_itself(self, decide: Callable[[int, int], list[Effect]]) -> None:
        self._effects.do(lambda: decide(self._runtime.now_ms(), self._runtime.real_ms()))
        self._effects.sync()

    # Deferred decisions

    @property
    def has_deferred(self) -> bool:
        """Whether decisions wait for effects."""
        return bool(self._deferred)

    def _when_settled(self, job: Callable[[], None]) -> None:
        if self._effects.settled:
            job()
        else:
            self._deferred.append(job)

    def decide_deferred(self, may_continue: Callable[[], bool]) -> None:
        """Runs the deferred decisions while ``may_continue``."""
        self.deciding = True
        try:
            while self._deferred and may_continue():
                self._deferred.popleft()()
        finally:
            self.deciding = False

    # Answers

    def committed(self, released: Iterable[Pending]) -> None:
        """Answers the requests whose records are committed."""
        for pending in released:
            future, response = self._submitted.pop(pending.token)
            if not future.done():
                future.set_result(response)

    def lost(self, abandoned: Iterable[Pending]) -> None:
        """Fails requests whose records may never be committed, because the leadership ended."""
        for pending in abandoned:
            future, _ = self._submitted.pop(pending.token)
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "the leadership ended before it was committed"))

    def refuse_all(self, error: KafkaError) -> None:
        """Fails all requests that wait. Called when ``refusal`` is set."""
        waiting = [future for future, _ in self._submitted.values()]
        self._submitted.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        while self._deferred:
            # The job finds the refusal and fails its future.
            self._deferred.popleft()()
