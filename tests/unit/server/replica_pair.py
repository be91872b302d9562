"""Two brokers in one process: real partitions, handlers and fetchers, no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, Pending, World, batch
from tidelog.broker.answer_types import Waiting
from tidelog.broker.apis.records.fetch import fetch
from tidelog.broker.apis.records.offsets import list_offsets
from tidelog.client.connection import ClientConnection
from tidelog.client.net.async_connection import OnFrame, Over
from tidelog.metadata.image import PartitionImage
from tidelog.model.ports import FileSlice
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import FetchView
from tidelog.protocol.framing import encode_response, read_request_header
from tidelog.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from tidelog.protocol.messages.fetch import FetchRequest, FetchResponse
from tidelog.server.cluster.channels import ChannelError, Failure
from tidelog.server.replication.replica_fetcher_manager import Replication
from tidelog.server.runtime import LoopRuntime
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.verification_guard import NOT_REQUIRED

VERSION = 18
FRAME_BEGINS = 9
"""Length, correlation id and tags before the body of a flexible response."""


def placed(leader: int, *, leader_epoch: int = 0, isr: tuple[int, ...] = (1, 2)) -> PartitionImage:
    return PartitionImage(
        (1, 2),
        isr,
        leader,
        leader_epoch=leader_epoch,
        partition_epoch=leader_epoch,
        directories=(DIRECTORY_IDS[0], DIRECTORY_IDS[0]),
    )


def _topic_config(overrides: Mapping[str, str]) -> Any:
    def listed(name: str) -> tuple[str, ...]:
        return tuple(filter(None, overrides.get(name, "").split(",")))

    return SimpleNamespace(
        leader_replication_throttled_replicas=listed("leader.replication.throttled.replicas"),
        follower_replication_throttled_replicas=listed("follower.replication.throttled.replicas"),
    )


class Pair:
    """Brokers 1 and 2. What 2 asks of 1, 1's own handlers answer; ``down`` cuts them off."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self.runtime = runtime
        self.worlds = {1: World(broker_id=1), 2: World(broker_id=2)}
        for world in self.worlds.values():
            world.manager._background = self._background
            world.now_ms = runtime.now_ms()
        self.down = False
        self.asked: list[Any] = []
        self.plain_requests = 0
        """How many of ``asked`` were sent from within the answer before."""
        self.isr_requests: list[AlterPartitionRequest] = []
        config = SimpleNamespace(
            replica_fetch_wait_max_ms=50,
            replica_fetch_min_bytes=1,
            replica_fetch_response_max_bytes=10 << 20,
            replica_fetch_max_bytes=1 << 20,
            replica_fetch_backoff_ms=40,
            replica_socket_timeout_ms=30_000,
            replica_lag_time_max_ms=30_000,
            replica_selector_class=None,
            replication_quota_window_num=11,
            replication_quota_window_size_seconds=1,
            alter_log_dirs_replication_quota_window_num=11,
            alter_log_dirs_replication_quota_window_size_seconds=1,
            topic_config=_topic_config,
            num_replica_fetchers=1,
            inter_broker_listener="PLAINTEXT",
            tidelog_scrub_max_bytes_per_second=1 << 40,
        )
        channels: Any = SimpleNamespace(to=lambda host, _port, _purpose: self._channel(host))
        controller: Any = self
        self.replications = {
            number: Replication(world.manager, controller, channels, runtime, config, lambda: 5)  # type: ignore[arg-type]
            for number, world in self.worlds.items()
        }

    def _channel(self, host: str) -> Any:
        def ask(*asked: Any, **how: Any) -> Any:
            return self._ask(host, *asked, **how)

        def begin(request: Any, *, timeout_ms: int, on_frame: OnFrame) -> Any:
            return self.runtime.loop.create_task(self._exchange(host, request, timeout_ms, on_frame))

        return SimpleNamespace(ask=ask, begin=begin)

    async def _exchange(self, host: str, request: FetchRequest, timeout_ms: int, on_frame: OnFrame) -> Any:
        """As a connection does it: ``on_frame`` sees each answer first, and may send the next request."""
        connection = ClientConnection("pair")
        line: Any = SimpleNamespace(machine=connection, paused=False, session_ends=lambda _: False)
        connection.sent(ApiKey.FETCH, VERSION)
        while True:
            answer = await self._ask(host, request, timeout_ms=timeout_ms)
            frame = encode_response(connection.oldest()[0], True, answer.encode(VERSION))
            taken = on_frame(line, memoryview(frame)[4:])
            if isinstance(taken, Over):
                if isinstance(taken.result, Exception):
                    raise taken.result
                return taken.result
            if taken is None:
                return answer
            self.plain_requests += 1
            sent = memoryview(taken)[4:]
            request = FetchRequest.decode(sent[read_request_header(sent)[-1] :], VERSION)

    def _background(self, job: Callable[[], None], done: Callable[[int], None]) -> None:
        job()
        self.runtime.loop.call_soon(done, NOW_MS)

    async def submit(self, _handler: object, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.isr_requests.append(request)
        topics = [
            ResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    ResponsePartitionData(
                        partition_index=each.partition_index,
                        leader_id=request.broker_id,
                        leader_epoch=each.leader_epoch,
                        isr=[member.broker_id for member in each.new_isr_with_epochs],
                        partition_epoch=each.partition_epoch + 1,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return AlterPartitionResponse(topics=topics)

    async def _ask(self, host: str, request: Any, *, timeout_ms: int) -> Any:
        del timeout_ms
        if self.down:
            await asyncio.sleep(0.01)
            raise ChannelError(Failure.REFUSED, "nobody there")
        self.asked.append(request)
        world = self.worlds[int(host[-1])]
        if not isinstance(request, FetchRequest):
            ctx = world.context(10)
            return await self._settle(ctx, list_offsets(ctx, request))
        ctx = world.context(18)
        ctx.node.config.fetch_max_bytes = 57_671_680
        answer = await self._settle(ctx, fetch(ctx, FetchView.from_message(request, 18)))
        raw = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in answer)
        return FetchResponse.decode(raw[FRAME_BEGINS:], 18)

    async def _settle(self, ctx: Any, answer: Any) -> Any:
        if not isinstance(answer, Coroutine | Waiting):
            await asyncio.sleep(0)
            return answer
        pending = Pending(ctx, answer)
        try:
            async with asyncio.timeout(0.05):
                while not pending.done:
                    if pending.blocking is not None or (pending.parked is not None and pending.parked.done):
                        pending.go_on()
                    else:
                        await asyncio.sleep(0.001)
        except TimeoutError:
            pending.expire()
        finally:
            if not pending.done:
                pending.abandon()
        return pending.answer

    def create(self, *partitions: PartitionImage, config: LogConfig | None = None) -> None:
        for number, world in self.worlds.items():
            world.create("t", *partitions, config=config)
            self.replications[number].follow(world.image)

    def start(self) -> None:
        for replication in self.replications.values():
            replication.start()

    async def stop(self) -> None:
        for replication in self.replications.values():
            await replication.stop()

    def log(self, broker: int, index: int = 0) -> Any:
        found = self.worlds[broker].partition("t", index).log
        assert found is not None
        return found

    def produce(self, *values: bytes, broker: int = 1, index: int = 0) -> None:
        self.worlds[broker].partition("t", index).append(batch(*values), NOW_MS, 1, proof=NOT_REQUIRED)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.001)


def run(story: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        runtime = LoopRuntime(asyncio.get_running_loop())
        pair = Pair(runtime)
        try:
            await story(pair)
        finally:
            await pair.stop()
            await runtime.close()

    asyncio.run(told())


def contents(log: Any) -> bytes:
    found = reading.read(log, log.log_start_offset, 1 << 30, upto=log.log_end_offset, min_one=True).slice
    return found.read() if found is not None else b""
