from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.unit.server.controllers import free_ports
from tidelog.client.connection_opening import SetupTimeout
from tidelog.client.net.async_connection import Asked, Line, RawAnswer
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import decode_request_header, encode_response_message
from tidelog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidelog.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidelog.protocol.messages.vote import VoteRequest
from tidelog.server.cluster import channels
from tidelog.server.cluster.channels import Channel, ChannelError, Channels, Failure
from tidelog.server.runtime import LoopRuntime, new_event_loop

LONG_MS = 30_000
SERVED = {ApiKey.API_VERSIONS: (0, 4), ApiKey.FETCH: (4, 18), ApiKey.METADATA: (0, 13)}


class Scripted:
    """A server that reads requests and answers them when, and as, the test says."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[int, int, int, memoryview, asyncio.StreamWriter]] = asyncio.Queue()
        self.connections = 0
        self.silent = False
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for writer in self.writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        while True:
            try:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = memoryview(await reader.readexactly(size))
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            header, position = decode_request_header(frame)
            if header.api_key == ApiKey.API_VERSIONS:
                if not self.silent:
                    served = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in SERVED.items()]
                    answer(writer, header.correlation_id, ApiKey.API_VERSIONS, 4, ApiVersionsResponse(api_keys=served))
                continue
            self.heard.put_nowait((header.api_key, header.api_version, header.correlation_id, frame[position:], writer))

    async def answer_next(self, response: Any) -> None:
        key, version, correlation_id, _, writer = await self.heard.get()
        answer(writer, correlation_id, ApiKey(key), version, response)


def answer(writer: asyncio.StreamWriter, correlation_id: int, key: ApiKey, version: int, response: Any) -> None:
    writer.write(encode_response_message(correlation_id, key, version, response))


class World:
    def __init__(self) -> None:
        self.loop = new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.runtime = LoopRuntime(self.loop)
        self.channels = Channels(self.runtime, "test")
        self.server = Scripted()

    def to_server(self, purpose: str = "test") -> channels.Channel:
        return self.channels.to("127.0.0.1", self.server.port, purpose)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            await self.server.start()
            async with asyncio.timeout(30):
                await main()
            self.channels.close()
            await self.server.stop()
            await self.runtime.close()

        self.loop.run_until_complete(bounded())


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(channels, "BACKOFF_MS", 1)
    world = World()
    yield world
    world.loop.close()


def records(text: str, times: int) -> FetchResponse:
    data = PartitionData(partition_index=0, records=memoryview(text.encode() * times))
    return FetchResponse(session_id=7, responses=[FetchableTopicResponse(partitions=[data])])


def test_questions_share_one_connection_and_are_answered_in_their_order(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        asks = [asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS)) for _ in range(40)]
        for number in range(40):
            await world.server.answer_next(MetadataResponse(controller_id=number))
        assert [(await each).controller_id for each in asks] == list(range(40))
        assert world.server.connections == 1

    world.run(main)


def test_no_more_than_sixteen_questions_are_under_way_at_once(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        asks = [asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS)) for _ in range(40)]
        first = [await world.server.heard.get() for _ in range(channels.IN_FLIGHT)]
        assert channel._line is not None
        assert len(channel._line.asked) == channels.IN_FLIGHT, "nothing more was sent"
        for key, version, correlation_id, _, writer in first:
            answer(writer, correlation_id, ApiKey(key), version, MetadataResponse(controller_id=1))
        for _ in range(40 - channels.IN_FLIGHT):
            await world.server.answer_next(MetadataResponse(controller_id=1))
        assert {(await each).controller_id for each in asks} == {1}

    world.run(main)


def test_each_purpose_has_a_connection_of_its_own(world: World) -> None:
    async def main() -> None:
        parked = asyncio.ensure_future(world.to_server("fetching").ask(FetchRequest(), timeout_ms=LONG_MS))
        held = await world.server.heard.get()
        urgent = asyncio.ensure_future(world.to_server("markers").ask(MetadataRequest(), timeout_ms=LONG_MS))
        await world.server.answer_next(MetadataResponse(controller_id=5))
        assert (await urgent).controller_id == 5
        assert not parked.done()
        answer(held[4], held[2], ApiKey.FETCH, held[1], FetchResponse())
        await parked
        assert world.to_server("fetching") is world.to_server("fetching")

    world.run(main)


def test_records_stay_as_they_came_while_more_answers_arrive(world: World) -> None:
    """The next answer must not be received into a buffer that is still being read, raw or not."""

    async def main() -> None:
        channel = world.to_server()
        raw = asyncio.ensure_future(channel.ask(FetchRequest(), timeout_ms=LONG_MS, raw=True))
        read = asyncio.ensure_future(channel.ask(FetchRequest(), timeout_ms=LONG_MS))
        last = asyncio.ensure_future(channel.ask(FetchRequest(), timeout_ms=LONG_MS))
        for text, times in (("first", 10), ("second", 400_000), ("third", 10)):
            await world.server.answer_next(records(text, times))
        first, second, third = await raw, await read, await last
        assert isinstance(first, RawAnswer)
        decoded = FetchResponse.decode(first.body, first.version)
        found = [bytes(each.responses[0].partitions[0].records or b"") for each in (decoded, second, third)]
        assert found == [b"first" * 10, b"second" * 400_000, b"third" * 10]

    world.run(main)


def test_a_request_that_cannot_be_encoded_fails_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        channel = world.to_server()
        broken = channel.begin(MetadataRequest(topics=[None]), timeout_ms=LONG_MS)  # type: ignore[list-item]
        behind = channel.begin(MetadataRequest(topics=[]), timeout_ms=LONG_MS)
        with pytest.raises(ChannelError) as failure:
            await broken
        assert failure.value.kind is Failure.UNSUPPORTED
        await world.server.answer_next(MetadataResponse(controller_id=3))
        assert (await behind).controller_id == 3
        assert "MetadataRequest cannot be sent" in caplog.text

    world.run(main)


def test_what_the_other_side_does_not_serve_is_said_and_the_connection_goes_on(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        with pytest.raises(ChannelError, match="VOTE") as failure:
            await channel.ask(VoteRequest(), timeout_ms=LONG_MS)
        assert failure.value.kind is Failure.UNSUPPORTED
        asked = asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS))
        await world.server.answer_next(MetadataResponse(controller_id=2))
        assert (await asked).controller_id == 2
        assert world.server.connections == 1

    world.run(main)


def test_where_nobody_listens_everybody_is_told_and_the_next_attempt_finds_who_came(world: World) -> None:
    port = free_ports(1)[0]

    async def main() -> None:
        channel = world.channels.to("127.0.0.1", port, "test")
        asks = [asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS)) for _ in range(2)]
        for each in asks:
            with pytest.raises(ChannelError) as failure:
                await each
            assert failure.value.kind is Failure.REFUSED
        late = Scripted()
        await late.start(port)
        asked = asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS))
        await late.answer_next(MetadataResponse(controller_id=3))
        assert (await asked).controller_id == 3
        await late.stop()

    world.run(main)


def test_a_lost_connection_fails_what_was_sent_and_the_next_question_opens_another(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        asks = [asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS)) for _ in range(3)]
        for _ in asks:
            *_, writer = await world.server.heard.get()
        writer.transport.abort()
        for each in asks:
            with pytest.raises(ChannelError) as failure:
                await each
            assert failure.value.kind is Failure.DISCONNECTED
        asked = asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS))
        await world.server.answer_next(MetadataResponse(controller_id=4))
        assert (await asked).controller_id == 4
        assert world.server.connections == 2

    world.run(main)


def test_an_overdue_answer_ends_the_connection_for_nothing_behind_it_can_be_answered(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        patient = asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS))
        with pytest.raises(ChannelError) as failure:
            await channel.ask(MetadataRequest(), timeout_ms=50)
        assert failure.value.kind is Failure.TIMEOUT
        with pytest.raises(ChannelError) as failure:
            await patient
        assert failure.value.kind is Failure.DISCONNECTED

    world.run(main)


def test_the_timer_of_an_answered_request_ends_neither_a_later_one_nor_a_login(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        first = asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=100))
        await world.server.answer_next(MetadataResponse())
        await first
        later = ask(channel, MetadataRequest())
        login = Asked(None, False, world.runtime.loop.create_future())
        assert channel._line is not None
        channel._line.asked.append(login)
        await asyncio.sleep(0.3)  # until the timer has rung
        assert not login.answer.done() and not later.done()
        channel._line.asked.remove(login)
        await world.server.answer_next(MetadataResponse(cluster_id="later"))
        assert (await later).cluster_id == "later"

    world.run(main)


def test_a_server_that_never_says_its_versions_lets_questions_time_out(world: World) -> None:
    async def main() -> None:
        world.server.silent = True
        with pytest.raises(ChannelError) as failure:
            await world.to_server().ask(MetadataRequest(), timeout_ms=20)
        assert failure.value.kind is Failure.TIMEOUT

    world.run(main)


def ask(channel: Channel, request: Any) -> asyncio.Future[Any]:
    return asyncio.ensure_future(channel.ask(request, timeout_ms=LONG_MS))


def begin(channel: Channel, request: Any) -> asyncio.Future[Any]:
    return channel.begin(request, timeout_ms=LONG_MS)


Begin = Callable[[Channel, Any], asyncio.Future[Any]]


@pytest.mark.parametrize("asks", [ask, begin])
def test_who_gives_up_a_question_leaves_the_others_their_answers(world: World, asks: Begin) -> None:
    async def main() -> None:
        channel = world.to_server()
        first = asks(channel, MetadataRequest())
        second = asks(channel, MetadataRequest())
        held = [await world.server.heard.get() for _ in range(2)]
        first.cancel()
        for number, (key, version, correlation_id, _, writer) in enumerate(held, 1):
            answer(writer, correlation_id, ApiKey(key), version, MetadataResponse(controller_id=number))
        assert (await second).controller_id == 2
        assert first.cancelled()

    world.run(main)


@pytest.mark.parametrize("asks", [ask, begin])
def test_a_question_given_up_before_it_was_sent_is_never_sent(world: World, asks: Begin) -> None:
    async def main() -> None:
        channel = world.to_server()
        first = asks(channel, FetchRequest())
        await asyncio.sleep(0)
        first.cancel()
        second = asks(channel, MetadataRequest())
        key, version, correlation_id, _, writer = await world.server.heard.get()
        assert key == ApiKey.METADATA
        answer(writer, correlation_id, ApiKey.METADATA, version, MetadataResponse(controller_id=1))
        await second

    world.run(main)


@pytest.mark.parametrize("connected", [True, False])
def test_closing_tells_everybody_and_nothing_is_asked_afterwards(world: World, connected: bool) -> None:
    async def main() -> None:
        world.server.silent = not connected
        channel = world.to_server()
        asked = asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS))
        if connected:
            await world.server.heard.get()
        else:
            await asyncio.sleep(0)
        world.channels.close()
        with pytest.raises(ChannelError, match="this node closed"):
            await asked
        for each in (channel, world.to_server("other")):
            with pytest.raises(ChannelError) as failure:
                await each.ask(MetadataRequest(), timeout_ms=LONG_MS)
            assert failure.value.kind is Failure.DISCONNECTED
            with pytest.raises(ChannelError, match="this node closed"):
                await each.begin(MetadataRequest(), timeout_ms=LONG_MS)

    world.run(main)


def test_garbage_ends_the_connection(world: World) -> None:
    async def main() -> None:
        asked = asyncio.ensure_future(world.to_server().ask(MetadataRequest(), timeout_ms=LONG_MS))
        _, version, correlation_id, _, writer = await world.server.heard.get()
        answer(writer, correlation_id + 1, ApiKey.METADATA, version, MetadataResponse())
        with pytest.raises(ChannelError, match="asked was") as failure:
            await asked
        assert failure.value.kind is Failure.DISCONNECTED

    world.run(main)


def test_an_answer_that_cannot_be_read_is_told_to_whoever_asked_at_once(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        asks = [asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS)) for _ in range(2)]
        _, _, correlation_id, _, writer = await world.server.heard.get()
        writer.write(struct.pack(">iib", 9, correlation_id, 0) + b"\xff" * 4)
        for asked in asks:
            with pytest.raises(ChannelError) as failure:
                await asked
            assert failure.value.kind is Failure.DISCONNECTED

    world.run(main)


def test_channels_that_nobody_uses_are_given_up_when_there_are_many(world: World) -> None:
    async def main() -> None:
        used = world.to_server()
        asked = asyncio.ensure_future(used.ask(MetadataRequest(), timeout_ms=LONG_MS))
        await world.server.answer_next(MetadataResponse())
        await asked
        for port in range(1, channels.MOST_IDLE_CHANNELS + 100):
            world.channels.to("192.0.2.1", port, "test")
        assert len(world.channels._channels) <= channels.MOST_IDLE_CHANNELS
        assert world.to_server() is used

    world.run(main)


def test_names_that_cannot_be_looked_up_are_failures_like_others(world: World) -> None:
    async def main() -> None:
        with pytest.raises(ChannelError) as failure:
            await world.channels.to("a" * 300, 9092, "test").ask(MetadataRequest(), timeout_ms=LONG_MS)
        assert failure.value.kind is Failure.DISCONNECTED

    world.run(main)


def pauses(world: World, monkeypatch: pytest.MonkeyPatch, waits_s: tuple[float, ...]) -> list[tuple[float, float]]:
    """Sends nothing, repeatedly, after these waits. What each attempt but the first slept, and what lay between it and the
    failure before, sleep included."""
    found: list[tuple[float, float]] = []
    really_sleep = asyncio.sleep

    async def main() -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            channel = world.channels.to("127.0.0.1", reserved.getsockname()[1], "test")

            async def sleep(seconds: float) -> None:
                found.append((seconds, world.loop.time() - channel._failed_s + seconds))

            monkeypatch.setattr(channels, "BACKOFF_MS", 50)
            monkeypatch.setattr(asyncio, "sleep", sleep)
            for wait_s in waits_s:
                await really_sleep(wait_s)
                with pytest.raises(ChannelError):
                    await channel.ask(MetadataRequest(), timeout_ms=LONG_MS)

    world.run(main)
    return found


def test_the_pause_before_the_next_attempt_grows_and_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = pauses(world, monkeypatch, (0,) * 8)
    for (_, pause_s), expected in zip(found, (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0), strict=True):
        assert 0.8 * expected <= pause_s <= 1.2 * expected


def test_who_asks_long_after_a_failure_does_not_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [slept for slept, _ in pauses(world, monkeypatch, (0, 0.07))] == [0.0]


def test_a_request_goes_out_in_the_highest_common_version_or_in_the_one_that_is_asked_for(world: World) -> None:
    async def main() -> None:
        channel = world.to_server()
        asks = [asyncio.ensure_future(channel.ask(MetadataRequest(), timeout_ms=LONG_MS, version=each)) for each in (None, 4, 99)]
        versions = []
        for _ in asks:
            key, version, correlation_id, _, writer = await world.server.heard.get()
            versions.append(version)
            answer(writer, correlation_id, ApiKey(key), version, MetadataResponse())
        assert versions == [13, 4, 13]
        await asyncio.gather(*asks)

    world.run(main)


def test_a_node_that_says_nothing_is_given_the_setup_timeout_and_twice_as_long_next_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []
    timeout = asyncio.timeout

    def noted(seconds: float) -> asyncio.Timeout:
        limits.append(seconds)
        return timeout(seconds)

    async def main() -> None:
        monkeypatch.setattr(asyncio, "timeout", noted)
        world.server.silent = True
        quick = Channels(world.runtime, "test", setup=SetupTimeout(20, 5_000))
        for _ in range(2):
            with pytest.raises(ChannelError):
                await quick.to("127.0.0.1", world.server.port, "test").ask(MetadataRequest(), timeout_ms=LONG_MS)
        quick.close()

    world.run(main)
    assert limits[0] == 0.02
    assert 0.8 * 0.04 <= limits[1] <= 1.2 * 0.04


FAULTS = [RuntimeError("a bug"), KeyError("a bug"), RecursionError("a bug"), asyncio.CancelledError("a bug")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_unexpected_error_while_a_channel_opens_is_not_the_last_one(
    world: World, fault: BaseException, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults, really_open = [fault], channels.open_line

    async def open_line(*given: Any) -> None:
        if faults:
            raise faults.pop()
        await really_open(*given)

    async def main() -> None:
        monkeypatch.setattr(channels, "open_line", open_line)
        channel = world.to_server()
        first = ask(channel, MetadataRequest())
        with pytest.raises(ChannelError, match="a bug" if isinstance(fault, Exception) else "this node closed") as failure:
            await first
        assert failure.value.kind is Failure.DISCONNECTED
        second = ask(channel, MetadataRequest())
        await world.server.answer_next(MetadataResponse(controller_id=2))
        assert (await second).controller_id == 2

    world.run(main)
    assert ("a bug" in caplog.text) is isinstance(fault, Exception)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_unexpected_error_while_a_channel_logs_in_again_is_not_the_last_one(
    world: World, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[BaseException] = []

    async def log_in(*given: Any) -> None:
        raise faults.pop()

    async def main() -> None:
        channel = world.to_server()
        first = ask(channel, MetadataRequest())
        await world.server.answer_next(MetadataResponse())
        await first
        faults.append(fault)
        monkeypatch.setattr(channels, "log_in", log_in)
        monkeypatch.setattr(Line, "session_ends", lambda line, now_s: bool(faults))
        second = ask(channel, MetadataRequest())
        with pytest.raises(ChannelError, match="a bug" if isinstance(fault, Exception) else "this node closed"):
            await second
        third = ask(channel, MetadataRequest())
        await world.server.answer_next(MetadataResponse(controller_id=3))
        assert (await third).controller_id == 3

    world.run(main)
