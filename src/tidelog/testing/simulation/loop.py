"""Event loops in virtual time: many simulated machines in one thread with one agenda; the same seed and calls give the same
run.

Each machine has its own ``SimLoop``, which is asyncio's event loop as far as a node uses it. Its callbacks are entries of the
world's ``Agenda``. Time passes only from one entry to the next. A machine without power is a loop that is ``dead``: its entries
are dropped, and its tasks never take another step.

Thread jobs are single steps: a job runs whole, a little later, and its completion is reported later still.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import inspect
import random
import traceback
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import Any

from tidelog.testing.simulation.disk import PowerLoss


class Stuck(AssertionError):
    """The agenda is empty, or repeats the same moment forever."""


class Agenda:
    """Entries ordered by time (seconds), then by the order in which they were added."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.steps = 0
        self._entries: list[tuple[float, int, SimLoop | None, events.Handle]] = []
        self._count = 0

    def put(self, when: float, loop: SimLoop | None, handle: events.Handle) -> None:
        """``loop`` is None for entries of the world itself."""
        self._count += 1
        now = self.now
        heapq.heappush(self._entries, (now if now > when else when, self._count, loop, handle))

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> events.Handle:
        """For the world itself: the network, faults, checkers."""
        return self.call_at(self.now + delay, callback, *args)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> events.Handle:
        """As ``call_later``, at an absolute time."""
        handle = _PlainHandle(callback, args)
        self.put(when, None, handle)
        return handle

    def step(self) -> bool:
        """Runs the next entry; False when there is none. No loop counts as running afterwards."""
        entries, take = self._entries, heapq.heappop
        while entries:
            when, _, loop, handle = take(entries)
            if handle._cancelled or (loop is not None and loop.dead):
                continue
            self.now = when
            self.steps += 1
            if loop is None:
                handle._run()
            elif loop.paused:
                loop.hold(handle)
            else:
                events._set_running_loop(loop)
                try:
                    handle._run()
                finally:
                    events._set_running_loop(None)
            return True
        return False

    def run_until(self, done: Callable[[], bool], deadline: float) -> bool:
        """Runs until ``done``; False when ``deadline`` (seconds since the beginning) comes first. Stuck when nothing is left
        to do."""
        former = events._get_running_loop()
        try:
            while not done():
                if self.now >= deadline:
                    return False
                if not self.step():
                    raise Stuck(f"nothing is left to do at {self.now:.3f} s")
            return True
        finally:
            events._set_running_loop(former)


class _PlainHandle(events.Handle):
    """A call that belongs to no loop."""

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = None, ()

    def _run(self) -> None:
        assert self._callback is not None
        self._callback(*self._args)


class _Soon(events.Handle):
    """As asyncio makes it, without a look at debug mode."""

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], loop: SimLoop, context: contextvars.Context | None
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


def new_loop(agenda: Agenda, name: str, *, seed: int, drift: float = 0.0) -> SimLoop:
    """A new process. The parts of asyncio's interface that it leaves out (subprocesses, pipes, signals) fail."""
    return SimLoop(agenda, name, seed=seed, drift=drift)  # type: ignore[abstract]


class SimLoop(asyncio.AbstractEventLoop):
    """``drift``: how much faster than the world's this machine's clock runs (0.01: one percent)."""

    def __init__(self, agenda: Agenda, name: str, *, seed: int, drift: float = 0.0) -> None:
        self.agenda = agenda
        self.name = name
        self.rng = random.Random(seed)
        self.drift = drift
        self.dead = False
        self.paused = False
        self.readers: dict[int, Callable[[], object]] = {}
        self.writers: dict[int, Callable[[], object]] = {}
        self.network: Any = None
        """Set by the network that the machine is attached to."""
        self.problems: list[str] = []
        """Errors of callbacks and tasks that are not awaited."""
        self._held: list[events.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []

    # Time

    def time(self) -> float:
        return self.agenda.now * (1.0 + self.drift)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> events.Handle:
        handle = _Soon(callback, args, self, context)
        self.agenda.put(self.agenda.now, self, handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> events.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> events.TimerHandle:
        handle = events.TimerHandle(when, callback, args, self, context)
        self.agenda.put(when / (1.0 + self.drift), self, handle)
        return handle

    def _timer_handle_cancelled(self, handle: events.TimerHandle) -> None:
        """The entry is dropped when its moment comes."""

    def hold(self, handle: events.Handle) -> None:
        """Keeps a callback until ``resume``."""
        self._held.append(handle)

    def pause(self) -> None:
        """As SIGSTOP does: nothing runs; the network keeps what arrives."""
        self.paused = True

    def resume(self) -> None:
        """Runs what has come due meanwhile."""
        self.paused = False
        held, self._held = self._held, []
        for handle in held:
            self.agenda.put(self.agenda.now, self, handle)

    def end(self) -> None:
        """Ends the process: none of its callbacks runs again."""
        self.dead = True
        for task in self._tasks:
            coroutine = task.get_coro()
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                # The coroutine has not started, so closing it runs nothing; without it Python would warn.
                coroutine.close()

    def forget(self) -> None:
        """Unwinds what the tasks had begun, once the world has ended, so that Python does not report it later. Their cleanup
        acts on disks and connections that no longer exist."""
        former = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while self._tasks:
                coroutine = self._tasks.pop().get_coro()
                if inspect.iscoroutine(coroutine):
                    with contextlib.suppress(BaseException):
                        coroutine.close()
        finally:
            events._set_running_loop(former)

    # Futures and tasks

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        # Held for the whole run: a collected coroutine runs its finally blocks, and a dead machine runs nothing.
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)
        if len(self._tasks) > 4096:
            self._tasks = [each for each in self._tasks if not each.done()]
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Runs ``func`` after a while, and reports its completion after another."""
        future = self.create_future()
        self.call_later(self.rng.expovariate(2000.0), self._job, future, func, args)
        return future

    def _job(self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = func(*args)
        except PowerLoss:
            raise
        except BaseException as problem:  # as with a thread, the exception belongs to the waiter
            error = problem

        def tell() -> None:
            if future.cancelled() or future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self.rng.expovariate(2000.0), tell)

    # Sockets

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        self.readers[fd] = (lambda: callback(*args)) if args else callback
        self.network.watch(self, fd)

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        self.writers[fd] = (lambda: callback(*args)) if args else callback
        self.network.watch(self, fd)

    def remove_writer(self, fd: Any) -> bool:
        return self.writers.pop(fd, None) is not None

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self.network.connect(self, protocol_factory, host, port)

    # What asyncio asks of every loop

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.dead:
            return
        error = context.get("exception")
        trace = "".join(traceback.format_exception(error)) if error is not None else ""
        if isinstance(error, PowerLoss):
            self.end()
            return
        self.problems.append(f"{self.name}: {context.get('message')}\n{trace}")
