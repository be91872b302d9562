"""``Broker``: a node in a thread of the test's own process.

The node is the real one, all of it: protocol, log, metadata log, groups; on a real port. Only its disk is in memory unless a
folder is given, and faults can be put in front of its APIs. Every method may be called from the test's thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from tidelog.broker.apis.coordinators import create_internal_topics
from tidelog.broker.table import BROKER_APIS
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSystem
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.records.builder import build_batch
from tidelog.replication.partition import Partition
from tidelog.server.node import Node
from tidelog.server.runtime import new_event_loop
from tidelog.storage.validation import DeepValidation
from tidelog.testing import group_sessions
from tidelog.testing.clock import Clock, MovableRuntime
from tidelog.testing.faults import Faults
from tidelog.testing.memory_disk import MemoryDisk
from tidelog.testing.records import Message, Text, from_batches, to_records

T = TypeVar("T")

START_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 30.0
READ_BYTES = 1 << 20
TOPIC_TIMEOUT_MS = 10_000
# What a test wants where Kafka's defaults are for production: groups that start at once, retention that follows time that is
# moved, few partitions, no fixed ports.
DEFAULTS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "log.retention.check.interval.ms": "10000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "tidelog.http.listener": "",
}


class Broker:
    """A broker on a free port of 127.0.0.1, for a ``with`` block or between ``start`` and ``stop``.

    ``data``: a folder to keep the data in, None for memory. ``config``: settings under Kafka's names. ``process``: in a process
    of its own, which can be killed. ``clock``: one that several brokers share, or that begins at another time.
    """

    def __new__(cls, *, process: bool = False, **_: Any) -> Self:
        """With ``process`` it is a ``ChildBroker``: the same, by remote control."""
        if process and cls is Broker:
            from tidelog.testing.child import ChildBroker

            return super().__new__(cast(type[Self], ChildBroker))
        return super().__new__(cls)

    def __init__(
        self,
        *,
        data: str | PathLike[str] | None = None,
        port: int = 0,
        config: Mapping[str, str | int] | None = None,
        process: bool = False,
        clock: Clock | None = None,
    ) -> None:
        settings = DEFAULTS | {name: str(value) for name, value in (config or {}).items()}
        settings.setdefault("listeners", f"PLAINTEXT://127.0.0.1:{port}")
        settings["log.dirs"] = "/memory" if data is None else str(data)
        self._config = BrokerConfig.from_properties(settings)
        self._fs: FileSystem | None = MemoryDisk() if data is None else None
        self._thread: threading.Thread | None = None
        self._started: threading.Event | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._node: Node | None = None
        self._settings = settings
        self.clock = clock or Clock()
        self.faults = Faults(self._delay)

    # -- life ----------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Self:
        """Returns when clients are served. The node's own error when it cannot start."""
        if self._thread is not None:
            raise RuntimeError("the broker runs already")
        self._started = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="tidelog-broker", daemon=True)
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the broker did not start within {START_TIMEOUT_S:.0f} s")
        if self._failure is not None:
            self._thread.join()
            self._thread = None
            raise self._failure
        return self

    def stop(self) -> None:
        """Clean, as SIGTERM would. With a folder (or the same ``Broker``) it can be started again on what it left."""
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

    def _run(self) -> None:
        loop = new_event_loop()
        runtime = MovableRuntime(loop, self.clock)
        try:
            loop.run_until_complete(self._serve(loop, runtime))
        except BaseException as error:
            # Handed to whoever waits in ``start`` or ``stop``: it cannot be raised in this thread to any use.
            self._failure = error
        finally:
            loop.run_until_complete(runtime.close())
            loop.close()
            self._loop = self._stop = self._node = None
            assert self._started is not None
            self._started.set()

    def restart(self) -> Self:
        """Stopped if it runs, and started on the same port and on what it left."""
        port = self._node.ports if self._node is not None else None
        self.stop()
        if port is not None:
            self._keep_port(next(iter(port.values())))
        return self.start()

    def kill(self) -> None:
        """As ``kill -9``: only for ``Broker(process=True)``. In this process nothing can be lost that way."""
        raise RuntimeError("a broker inside the test's own process cannot be killed; ask for Broker(process=True)")

    def _keep_port(self, port: int) -> None:
        listeners = self._settings["listeners"]
        if listeners.endswith(":0"):
            self._settings["listeners"] = f"{listeners[:-1]}{port}"
            self._config = BrokerConfig.from_properties(self._settings)

    async def _delay(self, seconds: float) -> None:
        await self._running().runtime.sleep(seconds)

    async def _serve(self, loop: asyncio.AbstractEventLoop, runtime: MovableRuntime) -> None:
        node = Node(self._config, runtime, self._fs, apis=self.faults.over(BROKER_APIS))
        await node.start()
        try:
            await self._prepare(node)
            self.faults.within(node.coordinators)
            self._loop, self._stop, self._node = loop, asyncio.Event(), node
            assert self._started is not None
            self._started.set()
            await self._stop.wait()
        finally:
            # Also of one that nobody will use: its port would stay taken.
            await node.stop()

    @staticmethod
    async def _prepare(node: Node) -> None:
        """Coordinators before anybody asks for them: librdkafka waits for half a second and more where there is none yet."""
        await create_internal_topics(node.broker)
        shards = (node.broker.groups, node.broker.transactions)
        async with asyncio.timeout(START_TIMEOUT_S):
            # A few empty logs are being loaded, and whoever does it tells nobody.
            while any(not each.running or isinstance(each.machines(), ErrorCode) for each in shards):  # noqa: ASYNC110
                await asyncio.sleep(0.0005)

    # -- where it is ---------------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that was taken."""
        return next(iter(self._running().ports.values()))

    @property
    def bootstrap_servers(self) -> str:
        """What a client's ``bootstrap.servers`` wants."""
        return f"127.0.0.1:{self.port}"

    def _running(self) -> Node:
        if self._node is None:
            raise RuntimeError("the broker does not run; use it in a with block or call start()")
        return self._node

    # -- topics and records --------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, **config: str | int) -> None:
        """A topic; settings with ``_`` for ``.``, as in ``cleanup_policy="compact"``. ValueError says why not."""
        configs = [CreatableTopicConfig(name=key.replace("_", "."), value=str(value)) for key, value in config.items()]
        self._create(CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs))

    def _create(self, topic: CreatableTopic, *, if_missing: bool = False) -> None:
        name = topic.name
        response = self._ask(QuorumController.create_topics, CreateTopicsRequest(topics=[topic], timeout_ms=TOPIC_TIMEOUT_MS))
        result = response.topics[0]
        if if_missing and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            self._wait(self._opened(name))
        elif result.error_code:
            raise ValueError(f"topic {name} was not created: {result.error_message or ErrorCode(result.error_code).name}")

    @property
    def topics(self) -> list[str]:
        """The topics that tests made, without Kafka's own, in the order of their names."""
        return sorted(name for name in self._running().broker.image.topics.by_name if not name.startswith("__"))

    def produce(self, topic: str, *values: Text | tuple[Text, Text] | Message, partition: int = 0) -> None:
        """Values, (key, value) pairs or Messages, as one batch; the topic is created if it is not there."""
        if topic not in self._running().broker.image.topics.by_name:
            # Another thread, or a client, may do the same meanwhile.
            self._create(CreatableTopic(name=topic, num_partitions=max(1, partition + 1), replication_factor=1), if_missing=True)
        self._call(lambda: self._append(topic, partition, values))

    async def _opened(self, topic: str) -> None:
        """Returns when a topic that somebody else has just created can be written to."""
        async with asyncio.timeout(CALL_TIMEOUT_S):
            # Whoever created it is told, and nobody else.
            while not isinstance(self._running().broker.replicas.by_name(topic, 0), Partition):  # noqa: ASYNC110
                await asyncio.sleep(0.0005)

    def messages(self, topic: str, partition: int | None = None) -> list[Message]:
        """Everything in the topic that consumers can see, partition by partition."""
        return self._call(lambda: self._read(topic, partition))

    def _append(self, topic: str, index: int, values: Iterable[Text | tuple[Text, Text] | Message]) -> None:
        now_ms = self._running().runtime.now_ms()
        batch = build_batch(to_records(values, now_ms))
        found = self._partition(topic, index)
        result = found.append(memoryview(batch), now_ms, 1)
        if isinstance(result, DeepValidation):
            result = found.append_validated(result.run(), now_ms, 1)
        if result.error is not ErrorCode.NONE:
            raise ValueError(f"{topic}-{index} refused the records: {result.error_message or result.error.name}")

    def _partition(self, topic: str, index: int) -> Partition:
        found = self._running().broker.replicas.by_name(topic, index)
        if not isinstance(found, Partition):
            raise ValueError(f"there is no partition {index} of topic {topic}: {found.name}")
        return found

    def _read(self, topic: str, only: int | None) -> list[Message]:
        image = self._running().broker.image.topics.by_name.get(topic)
        if image is None:
            raise ValueError(f"there is no topic {topic}; there are {', '.join(self.topics) or 'none'}")
        messages: list[Message] = []
        for index in range(len(image.partitions)) if only is None else [only]:
            log = self._partition(topic, index).log
            offset = log.log_start_offset if log is not None else 0
            while log is not None and offset < log.high_watermark:
                found = log.read(offset, READ_BYTES, upto=log.high_watermark, min_one=True)
                if found.slice is None:
                    break
                batch = list(from_batches(found.slice.read(), index))
                messages += [message for message in batch if message.offset >= offset]
                offset = max((message.offset for message in batch), default=log.high_watermark - 1) + 1
        return messages

    # -- time and groups ------------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """It is so much later for the broker, at once: sessions end, records and offsets expire, whoever waits is answered.
        Clients' own clocks stay. Returns when what was due is done."""
        self.clock.advance(seconds)

    def expire_member(self, group: str, member_id: str | None = None) -> list[str]:
        """Ends the session of a member, or of all, as if its time had passed; the ids of those that were put out."""
        return self._call(
            lambda: group_sessions.end(self._running().broker.groups, group, member_id, self._running().runtime.now_ms())
        )

    def reload_coordinators(self) -> None:
        """The coordinators of groups and transactions forget what they know and read their logs again, as when another broker
        takes over from one that died. Who waits for them is told to look for them again."""

        def reload() -> None:
            for shards in (self._running().broker.groups, self._running().broker.transactions):
                shards.reload()

        self._call(reload)

    # -- between tests -------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """As if freshly started: no topics, no groups, no faults. Clients may stay connected.

        After its disk was filled (``fill_disk``) the broker in memory begins anew on its port.
        """
        self.faults.clear()
        node, disk = self._running(), self._fs
        if isinstance(disk, MemoryDisk) and (disk.full or node.failed.is_set() or not node.logs.online_dirs()):
            self._fs = MemoryDisk()
            self.restart()
            return
        unused = self._call(lambda: group_sessions.unused_topics(self._running().broker))
        names = [name for name in self._running().broker.image.topics.by_name if name not in unused]
        if names:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=TOPIC_TIMEOUT_MS)
            self._ask(QuorumController.delete_topics, request)
            self._wait(self._prepare(self._running()))

    def fill_disk(self, full: bool = True) -> None:
        """Every write fails as on a full disk, until ``fill_disk(False)``; the first that does takes the log dir offline, as in
        Kafka, until ``restart()`` or ``reset()``. Only for a broker in memory."""
        if not isinstance(self._fs, MemoryDisk):
            raise RuntimeError("only the disk of a broker in memory can be filled")
        self._fs.full = full

    # -- the other thread ----------------------------------------------------------------------------------------------------

    def _ask(self, handler: Callable[..., Any], request: Any) -> Any:
        async def ask() -> Any:
            return await self._running().broker.controller.submit(handler, request)

        return self._wait(ask())

    def _call(self, call: Callable[[], T]) -> T:
        async def run() -> T:
            return call()

        return self._wait(run())

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        loop = self._loop
        if loop is None:
            coroutine.close()
            raise RuntimeError("the broker does not run; use it in a with block or call start()")
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(CALL_TIMEOUT_S)
