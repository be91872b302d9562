"""A node in a thread of this process: started, stopped, and called from the threads of tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from tidelog.broker.internal_topics import create_internal_topics
from tidelog.broker.table import BROKER_APIS
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError, ErrorCode
from tidelog.model.ports import FileSystem
from tidelog.server.node import Node
from tidelog.server.runtime import new_event_loop
from tidelog.testing.clock import Clock, MovableRuntime
from tidelog.testing.faults import Faults

T = TypeVar("T")

START_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 30.0
NOT_RUNNING = "the broker does not run; use it in a with block or call start()"
# Defaults for tests where Kafka's are for production: groups that start at once, retention that follows a moved clock, few
# partitions, no fixed ports.
DEFAULTS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "100",
    "log.retention.check.interval.ms": "10000",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "tidelog.http.listener": "",
}


def settings_of(config: Mapping[str, str | int] | None) -> dict[str, str]:
    """``config`` over ``DEFAULTS``. ConfigError for a setting that does not exist names the closest one."""
    settings = DEFAULTS | {name: str(value) for name, value in (config or {}).items()}
    misspelled = [each for each in BrokerConfig.from_properties(settings).warnings if "is not an option of a broker" in each]
    if misspelled:
        raise ConfigError("\n".join(each.replace(" and is ignored", "") for each in misspelled))
    return settings


class NodeThread:
    """One node, its thread and its event loop. All methods may be called from other threads."""

    def __init__(self, settings: Mapping[str, str], clock: Clock) -> None:
        self._settings = dict(settings)
        self._config = BrokerConfig.from_properties(settings)
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._started: threading.Event | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._node: Node | None = None
        self.faults = Faults(self._delay)

    def start(self, disk: FileSystem | None) -> None:
        """Start; returns when clients are served. Raises the node's own error when it cannot start; RuntimeError when it runs
        already."""
        if self._thread is not None:
            raise RuntimeError("the broker runs already")
        self._started = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, args=(disk,), name="tidelog-broker", daemon=True)
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the broker did not start within {START_TIMEOUT_S:.0f} s")
        if self._failure is not None:
            self._thread.join()
            self._thread = None
            raise self._failure

    def stop(self) -> None:
        """Stop cleanly, as by SIGTERM; nothing happens when the node does not run. TimeoutError when it takes longer than 30
        s."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stop is not None and thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(START_TIMEOUT_S)
        if thread.is_alive():
            raise TimeoutError(f"the broker did not stop within {START_TIMEOUT_S:.0f} s")
        if self._failure is not None:
            raise self._failure

    def _run(self, disk: FileSystem | None) -> None:
        loop = new_event_loop()
        runtime = MovableRuntime(loop, self._clock)
        try:
            loop.run_until_complete(self._serve(loop, runtime, disk))
        except BaseException as error:
            # ``start`` or ``stop`` raises it in the thread of the test.
            self._failure = error
        finally:
            loop.run_until_complete(runtime.close())
            loop.close()
            self._loop = self._stop = self._node = None
            assert self._started is not None
            self._started.set()

    def keep_port(self) -> None:
        """Use the present port again at the next start, even if the settings leave it to the system."""
        listeners = self._settings["listeners"]
        if self._node is not None and listeners.endswith(":0"):
            self._settings["listeners"] = f"{listeners[:-1]}{self.port}"
            self._config = BrokerConfig.from_properties(self._settings)

    async def _delay(self, seconds: float) -> None:
        await self.running().runtime.sleep(seconds)

    async def _serve(self, loop: asyncio.AbstractEventLoop, runtime: MovableRuntime, disk: FileSystem | None) -> None:
        node = Node(self._config, runtime, disk, apis=self.faults.over(BROKER_APIS))
        await node.start()
        try:
            await self.prepare(node)
            self.faults.within(node.parts.coordinators)
            self._loop, self._stop, self._node = loop, asyncio.Event(), node
            assert self._started is not None
            self._started.set()
            await self._stop.wait()
        finally:
            # After a failure too: otherwise the port would stay taken.
            await node.stop()

    @staticmethod
    async def prepare(node: Node) -> None:
        """Create the coordinators' topics before a client asks: without them librdkafka waits for half a second and more."""
        await create_internal_topics(node.broker)
        shards = (node.broker.groups, node.broker.transactions)
        async with asyncio.timeout(START_TIMEOUT_S):
            # A few empty logs are being loaded, and nothing reports when.
            while any(not each.running or isinstance(each.machines(), ErrorCode) for each in shards):  # noqa: ASYNC110
                await asyncio.sleep(0.0005)

    @property
    def port(self) -> int:
        """The port in use."""
        return next(iter(self.running().ports.values()))

    def running(self) -> Node:
        """The node. RuntimeError when it does not run."""
        if self._node is None:
            raise RuntimeError(NOT_RUNNING)
        return self._node

    @property
    def is_running(self) -> bool:
        """Whether clients are served."""
        return self._node is not None

    def ask(self, handler: Callable[..., Any], request: Any) -> Any:
        """The controller's answer to a request."""

        async def ask() -> Any:
            return await self.running().broker.controller.submit(handler, request)

        return self.wait(ask())

    def call(self, call: Callable[[], T]) -> T:
        """The result of a function that is called in the node's thread."""

        async def run() -> T:
            return call()

        return self.wait(run())

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs on the node's loop. TimeoutError after 30 s."""
        loop = self._loop
        if loop is None:
            coroutine.close()
            raise RuntimeError(NOT_RUNNING)
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(CALL_TIMEOUT_S)
