"""Coroutines in the virtual time of a simulated broker: what handlers and share partitions need of a runtime, without asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.share_world import ShareWorld


class Promise:
    """A value that comes later, or an exception."""

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: Exception | None = None
        self._then: list[Callable[[], None]] = []

    def keep(self, value: Any = None, error: Exception | None = None) -> None:
        """The value is there; only the first one counts."""
        if not self.done:
            self.done, self.value, self.error = True, value, error
            then, self._then = self._then, []
            for each in then:
                each()

    def then(self, callback: Callable[[], None]) -> None:
        self._then.append(callback)

    def __await__(self) -> Generator[Promise, None, Any]:
        if not self.done:
            yield self
        if self.error is not None:
            raise self.error
        return self.value


class Task:
    """A coroutine that goes on whenever what it awaits is there."""

    def __init__(self, runtime: SimRuntime, coroutine: Coroutine[Any, Any, Any], done: Callable[[Any], None]) -> None:
        self._runtime = runtime
        self._coroutine = coroutine
        self._done = done
        self.ended = False

    def step(self) -> None:
        if self.ended or not self._runtime.alive:
            return
        try:
            awaited = self._coroutine.send(None)
        except StopIteration as end:
            self.ended = True
            self._done(end.value)
            return
        awaited.then(lambda: self._runtime.later(0, self.step))

    def abandon(self) -> None:
        """As when a client disconnects: it is closed where it waits."""
        if not self.ended:
            self.ended = True
            self._coroutine.close()


class SimRuntime:
    """The runtime of one life of a broker. When that ends, nothing of it takes another step."""

    def __init__(self, world: ShareWorld) -> None:
        self.world = world
        self.alive = True
        self.parked: dict[Any, Promise] = {}
        """What requests wait for."""
        self._tasks: list[Task] = []

    def end(self) -> None:
        self.alive = False
        for task in self._tasks:
            task.abandon()

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.world.at(delay_ms, lambda: call() if self.alive else None)

    def now_ms(self) -> int:
        return self.world.now

    even_ms = now_ms

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> Task:
        task = self.start(coroutine, lambda _: None)
        self.later(0, task.step)
        return task

    def start(self, coroutine: Coroutine[Any, Any, Any], done: Callable[[Any], None]) -> Task:
        """A task that has not taken its first step."""
        task = Task(self, coroutine, done)
        self._tasks = [each for each in self._tasks if not each.ended]
        self._tasks.append(task)
        return task

    def sleep(self, seconds: float) -> Awaitable[None]:
        promise = Promise()
        self.later(max(0, round(seconds * 1000)), promise.keep)
        return promise

    def run_blocking(self, job: Callable[[], Any]) -> Awaitable[Any]:
        promise = Promise()
        self.later(self.world.rng.randint(0, 20), lambda: promise.keep(job()))
        return promise

    def wait(self, parked: Any) -> Awaitable[None]:
        promise = Promise()
        if parked.done:
            promise.keep()
            return promise

        def done() -> None:
            self.parked.pop(parked, None)
            promise.keep()

        def expire() -> None:
            if not parked.done:
                parked.expired = True
                parked.finish()

        parked.on_done = done
        self.parked[parked] = promise
        if parked.deadline_ms < 1 << 60:
            self.later(max(0, parked.deadline_ms - self.world.now), expire)
        return promise
