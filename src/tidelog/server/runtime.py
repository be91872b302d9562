"""The outside world for one node: clock, randomness, tasks, worker threads, and waiting.

What is decided here: that a task is never lost silently (``spawn`` keeps it and reports its failure), that threads are
bounded, and that coroutines of handlers are stepped right away instead of becoming tasks: an answer that does not have to
wait costs no trip around the loop (``drive``).

Two pools: ``run_blocking`` for what somebody waits for (a sync, a cold read), ``run_long`` for what takes long and nobody
waits for (compaction, recovery, deleting files), so that the second never holds up the first.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from tidelog.replication.delayed import Parked, Purgatory
from tidelog.server.even_clock import EvenClock

T = TypeVar("T")
log = logging.getLogger(__name__)

BLOCKING_THREADS = 8
LONG_THREADS = 2
BREATH_S = 0.0005
LONGEST_ALARM_MS = 3_600_000
"""Some requests have no deadline; timers of centuries are not to be relied on."""


def system_now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed, else asyncio's own, of the kind that can wait for sockets to become readable: on Windows that
    is not its default."""
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Alarm(Protocol):
    """What rings later."""

    def cancel(self) -> None:
        """It does not ring any more."""


class LoopRuntime:
    """What the node and its handlers ask of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.now_ms: Callable[[], int] = system_now_ms
        # Both are looked up each time: who moves the node's time puts other clocks in their places.
        self._even = EvenClock(lambda: self.now_ms(), lambda: self.steady_ms())  # noqa: PLW0108
        self.rng = random.Random(int.from_bytes(random.SystemRandom().randbytes(32), "big"))
        self._tasks: set[asyncio.Task[Any]] = set()
        self._blocking = ThreadPoolExecutor(BLOCKING_THREADS, "blocking")
        self._long = ThreadPoolExecutor(LONG_THREADS, "long")
        self._purgatory = Purgatory()
        self._done: list[Callable[[], Callable[[], None] | None]] = []
        self._alarm: Alarm | None = None
        self._alarm_ms = sys.maxsize

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run it on the loop; a failure is logged under its name, for nobody may ever await the task."""
        task = self.loop.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    def promise(self) -> asyncio.Future[Any]:
        """A future that may fail when whoever waited for it has gone: then there is nobody to be told."""
        future = self.loop.create_future()
        future.add_done_callback(_look)
        return future

    def run_blocking(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """The result of ``job``, run in a thread; for work that somebody waits for."""
        return self.loop.run_in_executor(self._blocking, job)

    def run_long(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """The result of ``job``, run in a thread; for work that takes long and that nobody waits for."""
        return self.loop.run_in_executor(self._long, job)

    def breathe(self) -> None:
        """In a thread that is at work in Python for long: lets the loop go on. A thread that holds the interpreter for its whole
        interval costs the loop that interval at each call to the system; one that rests costs it nothing."""
        time.sleep(BREATH_S)

    def in_parallel(
        self, jobs: Sequence[Callable[[], None]], threads: int, name: str, each_done: Callable[[int], None] | None = None
    ) -> None:
        """All of them, in threads of their own; blocks. ``each_done`` is told how many have ended. What one raises is raised."""
        with ThreadPoolExecutor(max(1, threads), name) as pool:
            for done, future in enumerate([pool.submit(job) for job in jobs], 1):
                future.result()
                if each_done is not None:
                    each_done(done)

    def bind(self, name: str, host: str, port: int) -> socket.socket:
        """A socket for a listener, not listening yet. See ``server.serving.listener.bind``."""
        from tidelog.server.serving.listener import bind

        return bind(name, host, port)

    def wait(self, parked: Parked) -> asyncio.Future[None]:
        """A future that is done when ``parked`` is: at once, when something finishes it, or at its deadline."""
        future: asyncio.Future[None] = self.loop.create_future()
        if parked.done:
            future.set_result(None)
            return future

        def done() -> None:
            if not future.done():
                future.set_result(None)

        self._park(parked, done)
        return future

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None]) -> None:
        """``then`` is called when ``parked`` is done, at the end of that turn of the loop, and after all of those what they
        return, once for those that return the same: what ends together is answered together. Who gives up unsets ``on_done``."""

        def done() -> None:
            self._done.append(then)
            if len(self._done) == 1:
                self.loop.call_soon(self._go_on)

        if parked.done:
            done()
        else:
            self._park(parked, done)

    def _go_on(self) -> None:
        done, self._done = self._done, []
        afterwards: dict[Callable[[], None], None] = {}
        for then in done:
            last = then()
            if last is not None:
                afterwards[last] = None
        for last in afterwards:
            last()

    def _park(self, parked: Parked, done: Callable[[], None]) -> None:
        parked.on_done = done
        # From here on it is how long that counts, not until when: the wall clock may be set back, by an hour even.
        parked.deadline_ms += self.steady_ms() - self.now_ms()
        self._purgatory.park(parked)
        if parked.deadline_ms < self._alarm_ms:
            self._set_alarm(parked.deadline_ms)

    def steady_ms(self) -> int:
        """Milliseconds on a clock that nobody sets, for how long something takes."""
        return time.monotonic_ns() // 1_000_000

    def even_ms(self) -> int:
        """The wall clock without its jumps, for how old something is (``server.even_clock``)."""
        return self._even.now_ms()

    def busy_ns(self) -> int:
        """Nanoseconds, for how long the loop is at something."""
        return time.perf_counter_ns()

    def real_ms(self) -> int:
        """The same, of the machine itself: for what happens on sockets. A test may move the node's time, never its peers'."""
        return time.monotonic_ns() // 1_000_000

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Alarm:
        """On the loop, when so much of the node's time has passed; what is about sockets asks the loop itself."""
        return self.loop.call_later(delay_s, callback)

    async def sleep(self, seconds: float) -> None:
        """Until so much of the node's time has passed."""
        over: asyncio.Future[None] = self.loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        alarm = self.call_later(seconds, end)
        try:
            await over
        finally:
            alarm.cancel()

    def _set_alarm(self, deadline_ms: int) -> None:
        now_ms = self.steady_ms()
        deadline_ms = min(deadline_ms, now_ms + LONGEST_ALARM_MS)
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = deadline_ms
        self._alarm = self.call_later(max(0, deadline_ms - now_ms) / 1000, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        self._alarm_ms = sys.maxsize
        self._purgatory.expire(self.steady_ms())
        deadline_ms = self._purgatory.next_deadline()
        if deadline_ms is not None:
            self._set_alarm(deadline_ms)

    async def close(self) -> None:
        """Cancel what still runs and wait for it; worker threads end with what they are at."""
        if self._alarm is not None:
            self._alarm.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._blocking.shutdown(wait=True, cancel_futures=True)
        self._long.shutdown(wait=True, cancel_futures=True)


def _look(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


class Driver:
    """One coroutine of a handler, stepped by the futures that it awaits; no task, and the first step runs at once.

    ``then(result, error)`` is called once, unless ``abandon`` came first: then the coroutine is closed where it waits, which
    runs its ``finally`` blocks.
    """

    __slots__ = ("_coroutine", "_then")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], then: Callable[[Any, BaseException | None], None]) -> None:
        self._coroutine: Coroutine[Any, Any, Any] | None = coroutine
        self._then = then

    def start(self) -> None:
        """The first step. ``then`` may be called before this returns."""
        self._step(None)

    def abandon(self) -> None:
        """Nobody wants the answer any more."""
        coroutine, self._coroutine = self._coroutine, None
        if coroutine is not None:
            coroutine.close()

    def _step(self, _: asyncio.Future[Any] | None) -> None:
        coroutine = self._coroutine
        if coroutine is None:
            return
        try:
            # A future's result or exception reaches the coroutine through the future itself, which it is awaiting.
            future = coroutine.send(None)
        except StopIteration as stop:
            self._coroutine = None
            self._then(stop.value, None)
        except Exception as error:
            # Not handled here, only handed on: the connection's owner logs it and closes the connection.
            self._coroutine = None
            self._then(None, error)
        else:
            # What asyncio's own Task does with what is yielded to it: take the mark off, come back when it is done.
            future._asyncio_future_blocking = False
            future.add_done_callback(self._step)
