"""One node's clock, randomness, tasks, worker threads, and waiting.

A task never fails silently (``spawn`` keeps it and logs its failure), threads are bounded, and coroutines of handlers are stepped
immediately instead of becoming tasks, so an answer that does not have to wait needs no turn of the loop (``Driver``).

Two pools: ``run_blocking`` for jobs whose result is waited for (a sync, a cold read), ``run_long`` for long background jobs
(compaction, recovery, deleting files), so that long jobs never delay the others.
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

from tidelog.replication.purgatory import Parked, Purgatory
from tidelog.server.even_clock import EvenClock
from tidelog.server.serving.binding import bind

T = TypeVar("T")
log = logging.getLogger(__name__)

BLOCKING_THREADS = 8
LONG_THREADS = 2
BREATH_S = 0.0005
LONGEST_ALARM_MS = 3_600_000
"""Some requests have no deadline; a timer set centuries ahead is unreliable."""


def system_now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop if installed, otherwise asyncio's selector loop, which is not the default on Windows: the node waits for sockets
    to become readable."""
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Alarm(Protocol):
    """A timer."""

    def cancel(self) -> None:
        """Cancels the timer."""


class Worked(Protocol):
    """Whom the loop works for: a client's session."""

    loop_ns: int
    """The time that this took, in ns; the loop adds to it."""


class _Anyone:
    """For work that is counted for no client."""

    loop_ns = 0


class LoopRuntime:
    """What the node and its handlers need from the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.now_ms: Callable[[], int] = system_now_ms
        self._even = EvenClock(self)
        self.rng: random.Random = random.SystemRandom()
        """Not a seeded ``random.Random``: from some hundred ids that it made, such as of fetch sessions, all others follow."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._blocking = ThreadPoolExecutor(BLOCKING_THREADS, "blocking")
        self._long = ThreadPoolExecutor(LONG_THREADS, "long")
        self.purgatory = Purgatory()
        self._done: list[tuple[Callable[[], Callable[[], None] | None], Worked]] = []
        self._anyone = _Anyone()
        self._alarm: Alarm | None = None
        self._alarm_ms = sys.maxsize

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Runs it on the loop. A failure is logged under ``name``, because the task may never be awaited."""
        task = self.loop.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    def promise(self) -> asyncio.Future[Any]:
        """A future whose failure is not logged when no caller awaits it any more."""
        future = self.loop.create_future()
        future.add_done_callback(_look)
        return future

    def run_blocking(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Runs ``job`` in a thread and returns its result; for work that callers wait for."""
        return self.loop.run_in_executor(self._blocking, job)

    def run_long(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """Runs ``job`` in a thread and returns its result; for long background work."""
        return self.loop.run_in_executor(self._long, job)

    def breathe(self) -> None:
        """Called in a thread that runs Python code for long: lets the loop run. A thread that holds the interpreter for a full
        switch interval costs the loop that interval at each system call; one that sleeps costs it nothing."""
        time.sleep(BREATH_S)

    def in_parallel(
        self, jobs: Sequence[Callable[[], None]], threads: int, name: str, each_done: Callable[[int], None] | None = None
    ) -> None:
        """Runs all jobs in new threads; blocks. ``each_done`` gets the number of finished jobs. An exception of a job is
        raised."""
        with ThreadPoolExecutor(max(1, threads), name) as pool:
            for done, future in enumerate([pool.submit(job) for job in jobs], 1):
                future.result()
                if each_done is not None:
                    each_done(done)

    def bind(self, name: str, host: str, port: int) -> socket.socket:
        """A bound socket for a listener, not listening yet. See ``server.serving.binding.bind``."""
        return bind(name, host, port)

    def wait(self, parked: Parked) -> asyncio.Future[None]:
        """A future that completes when ``parked`` is done: now, when it is finished, or at its deadline."""
        future: asyncio.Future[None] = self.loop.create_future()
        if parked.done:
            future.set_result(None)
            return future

        def done() -> None:
            if not future.done():
                future.set_result(None)

        self._park(parked, done)
        return future

    def when_done(self, parked: Parked, then: Callable[[], Callable[[], None] | None], worked: Worked | None = None) -> None:
        """Calls ``then`` once ``parked`` is done, at the end of that turn of the loop, and after all such calls what they
        returned, each callable once, so that waits that end together are answered together. To give up, unset ``on_done``.
        ``worked``: whom the time of both calls is counted for."""
        entry = (then, worked or self._anyone)

        def done() -> None:
            self._done.append(entry)
            if len(self._done) == 1:
                self.loop.call_soon(self._go_on)

        if parked.done:
            done()
        else:
            self._park(parked, done)

    def _go_on(self) -> None:
        done, self._done = self._done, []
        afterwards: dict[Callable[[], None], Worked] = {}
        before_ns = self.busy_ns()
        for then, worked in done:
            last = then()
            if last is not None:
                afterwards[last] = worked
            now_ns = self.busy_ns()
            worked.loop_ns += now_ns - before_ns
            before_ns = now_ns
        for last, worked in afterwards.items():
            last()
            now_ns = self.busy_ns()
            worked.loop_ns += now_ns - before_ns
            before_ns = now_ns

    def _park(self, parked: Parked, done: Callable[[], None]) -> None:
        parked.on_done = done
        # From here on the remaining time counts, not the deadline: the wall clock may be set back, even by an hour.
        parked.deadline_ms += self.steady_ms() - self.now_ms()
        self.purgatory.park(parked)
        if parked.deadline_ms < self._alarm_ms:
            self._set_alarm(parked.deadline_ms)

    def steady_ms(self) -> int:
        """Monotonic milliseconds, for durations."""
        return time.monotonic_ns() // 1_000_000

    def even_ms(self) -> int:
        """The wall clock without its jumps, for ages (``server.even_clock``)."""
        return self._even.now_ms()

    def records_ms(self) -> int:
        """Current time for the age of records, whose timestamps come from the wall clock. When that was set back by hours, the
        even clock stays ahead for many hours, and by it new records would be past their retention immediately."""
        return min(self.even_ms(), self.now_ms())

    busy_ns: Callable[[], int] = staticmethod(time.perf_counter_ns)
    """Nanoseconds, to measure how long the loop is busy; called for every read of a socket."""

    def real_ms(self) -> int:
        """Monotonic milliseconds for socket work. A test may shift a node's time, never this clock."""
        return time.monotonic_ns() // 1_000_000

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Alarm:
        """Calls ``callback`` on the loop after ``delay_s`` of the node's time; socket work uses the loop's own timers."""
        return self.loop.call_later(delay_s, callback)

    async def sleep(self, seconds: float) -> None:
        """Waits ``seconds`` of the node's time."""
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
        self.purgatory.expire(self.steady_ms())
        deadline_ms = self.purgatory.next_deadline()
        if deadline_ms is not None:
            self._set_alarm(deadline_ms)

    async def close(self) -> None:
        """Cancels the remaining tasks and waits for them; worker threads finish their current job."""
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
    """Steps a handler's coroutine by the futures that it awaits, without a task; the first step runs immediately.

    ``then(result, error)`` is called once, unless ``abandon`` came first: then the coroutine is closed where it waits, which runs
    its ``finally`` blocks.
    """

    __slots__ = ("_coroutine", "_then")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], then: Callable[[Any, BaseException | None], None]) -> None:
        self._coroutine: Coroutine[Any, Any, Any] | None = coroutine
        self._then = then

    def start(self) -> None:
        """Runs the first step. ``then`` may be called before this returns."""
        self._step(None)

    def abandon(self) -> None:
        """Closes the coroutine; ``then`` is not called."""
        coroutine, self._coroutine = self._coroutine, None
        if coroutine is not None:
            coroutine.close()

    def _step(self, _: asyncio.Future[Any] | None) -> None:
        coroutine = self._coroutine
        if coroutine is None:
            return
        try:
            # The awaited future itself passes its result or exception to the coroutine.
            future = coroutine.send(None)
        except StopIteration as stop:
            self._coroutine = None
            self._then(stop.value, None)
        except Exception as error:
            # Passed on: the connection's owner logs it and closes the connection.
            self._coroutine = None
            self._then(None, error)
        else:
            # As asyncio's own Task does with a yielded future: clear the mark, and continue when it is done.
            future._asyncio_future_blocking = False
            future.add_done_callback(self._step)
