from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld
from tests.unit.server.loops import finish, run
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Waiting
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import FileSlice
from tidelog.protocol.api_keys import ApiKey
from tidelog.replication.purgatory import ParkedAppend
from tidelog.server.native import read_steps
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving.connection import Connection
from tidelog.server.serving.connection_machine import REQUESTS_PER_TURN
from tidelog.server.serving.send_batching import Turn
from tidelog.server.serving.transport import PlainTransport
from tidelog.server.serving.violations import Violations

Handle = Callable[[bytes], Any]


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Side:
    """A connection whose requests are answered by ``handle``, and the client's end of it."""

    def __init__(
        self, runtime: LoopRuntime, turn: Turn, handle: Handle, max_request_bytes: int, read_step: Callable[..., Any] | None
    ) -> None:
        self.runtime = runtime
        self.handled: list[bytes] = []
        self.closed_connections: list[Connection] = []
        self.violations = Violations()
        self.turn = turn
        ours, self.client = socket.socketpair()
        self.client.setblocking(False)

        def dispatch(session: Session, view: memoryview) -> Any:
            self.handled.append(bytes(view))
            return handle(bytes(view))

        self.handle: Callable[[Session, memoryview], Any] = dispatch
        self.metered = False
        self.times = RequestTimes(runtime.busy_ns)
        self.read_step = read_step
        self.sasl = None
        self.connection = Connection(self, PlainTransport(ours), NodeWorld().session(), max_request_bytes)

    def authenticated(self, connection: Connection) -> None:
        raise AssertionError("no client logs in")

    def too_late(self, connection: Connection, within_s: float) -> None:
        raise AssertionError("no client logs in")

    def closed(self, connection: Connection) -> None:
        self.closed_connections.append(connection)

    async def send(self, data: bytes) -> None:
        await self.runtime.loop.sock_sendall(self.client, data)

    async def receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = await asyncio.wait_for(self.runtime.loop.sock_recv(self.client, count - len(data)), 10)
            if not more:
                return data
            data += more
        return data

    async def ended(self) -> bool:
        """Whether the server closes, with nothing left to read."""
        try:
            return await asyncio.wait_for(self.runtime.loop.sock_recv(self.client, 1), 10) == b""
        except ConnectionResetError:
            return True


class World:
    def __init__(self, read_step: Callable[..., Any] | None = None) -> None:
        self.read_step = read_step
        self.runtime = LoopRuntime(new_event_loop())
        self.turn = Turn(self.runtime.loop, self.runtime.busy_ns)
        self.sides: list[Side] = []

    def side(self, handle: Handle, max_request_bytes: int = 1000) -> Side:
        side = Side(self.runtime, self.turn, handle, max_request_bytes, self.read_step)
        self.sides.append(side)
        return side

    def close(self) -> None:
        for side in self.sides:
            side.connection.close()
            side.client.close()
        finish(self.runtime)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        return run(self.runtime, main)


@pytest.fixture(params=["python", "compiled"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Without the compiled read step, and with it; both are Python where it was not compiled."""
    world = World(read_steps() if request.param == "compiled" else None)
    yield world
    world.close()


async def until(condition: Callable[[], object]) -> None:
    """Returns when it holds; fails when everything has happened and it does not."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never happened")


async def settle() -> None:
    """Everything that is ready has happened."""
    for _ in range(20):
        await asyncio.sleep(0)


def echo(body: bytes) -> list[bytes]:
    return [frame(b"re:" + body)]


def test_requests_are_answered_in_their_order_however_they_arrive(world: World) -> None:
    side = world.side(echo)

    async def main() -> None:
        bodies = [b"%d" % number * (number % 40 + 1) for number in range(100)]
        data = b"".join(map(frame, bodies))
        for start in range(0, len(data), 777):
            await side.send(data[start : start + 777])
        expected = b"".join(frame(b"re:" + body) for body in bodies)
        assert await side.receive(len(expected)) == expected

    world.run(main)


def test_a_request_that_comes_byte_by_byte_is_answered(world: World) -> None:
    side = world.side(echo)

    async def main() -> None:
        for byte in frame(b"slow"):
            await side.send(bytes([byte]))
            await settle()
        assert await side.receive(11) == frame(b"re:slow")

    world.run(main)


def test_more_requests_than_a_turn_has_are_all_answered(world: World) -> None:
    side = world.side(echo)

    async def main() -> None:
        count = REQUESTS_PER_TURN * 3 + 1
        await side.send(frame(b"x") * count)
        assert await side.receive(8 * count) == frame(b"re:x") * count

    world.run(main)


def test_clients_that_ask_at_the_same_time_each_get_all_their_answers_in_order(world: World) -> None:
    sides = [world.side(lambda body: [frame(body)]) for _ in range(5)]

    async def scenario() -> None:
        for round_ in range(20):
            bodies = [[b"%d:%d:%d" % (number, round_, index) for index in range(1 + number * 20)] for number in range(5)]
            for side, mine in zip(sides, bodies, strict=True):
                await side.send(b"".join(map(frame, mine)))
            for side, mine in zip(sides, bodies, strict=True):
                expected = b"".join(map(frame, mine))
                assert await side.receive(len(expected)) == expected

    world.run(scenario)


def test_one_request_is_in_flight_and_the_next_waits_for_its_answer(world: World) -> None:
    release: asyncio.Future[None] = world.runtime.loop.create_future()

    async def wait() -> list[bytes]:
        await release
        return [frame(b"waited")]

    side = world.side(lambda body: wait() if body == b"wait" else echo(body))

    async def main() -> None:
        await side.send(frame(b"first") + frame(b"wait") + frame(b"next"))
        assert await side.receive(12) == frame(b"re:first")
        await settle()
        assert side.handled == [b"first", b"wait"]
        release.set_result(None)
        assert await side.receive(10 + 11) == frame(b"waited") + frame(b"re:next")

    world.run(main)


def test_a_handler_that_need_not_wait_after_all_is_answered_at_once(world: World) -> None:
    async def ready(body: bytes) -> list[bytes]:
        return echo(body)

    side = world.side(ready)

    async def main() -> None:
        await side.send(frame(b"a") + frame(b"b"))
        assert await side.receive(16) == frame(b"re:a") + frame(b"re:b")

    world.run(main)


def test_a_request_without_an_answer_lets_the_next_one_be_handled(world: World) -> None:
    side = world.side(lambda body: NO_RESPONSE if body == b"quiet" else echo(body))

    async def main() -> None:
        await side.send(frame(b"quiet") * 3 + frame(b"loud"))
        assert await side.receive(11) == frame(b"re:loud")

    world.run(main)


def test_a_close_signal_ends_the_connection_behind_the_answers_before_it(world: World) -> None:
    side = world.side(lambda body: CLOSE_CONNECTION if body == b"bad" else echo(body))

    async def main() -> None:
        await side.send(frame(b"good") + frame(b"bad") + frame(b"late"))
        assert await side.receive(11) == frame(b"re:good")
        assert await side.ended()
        assert side.handled == [b"good", b"bad"]
        assert side.closed_connections == [side.connection]

    world.run(main)


@pytest.mark.parametrize("prefix", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"GET ", (1001).to_bytes(4, "big")])
def test_a_length_that_no_request_has_ends_the_connection(world: World, prefix: bytes) -> None:
    side = world.side(echo)

    async def main() -> None:
        await side.send(prefix + b"whatever")
        assert await side.ended()
        assert side.handled == []

    world.run(main)


def test_an_http_client_is_named_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    side = world.side(echo)

    async def main() -> None:
        await side.send(frame(b"good") + b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await side.receive(11) == frame(b"re:good")
        assert await side.ended()

    with caplog.at_level(logging.INFO):
        world.run(main)
    assert "an HTTP request, but this listener speaks Kafka's protocol" in caplog.text
    assert "1195725856" not in caplog.text


def violate(body: bytes) -> list[bytes]:
    raise ProtocolViolation("not a request")


def fail(body: bytes) -> list[bytes]:
    raise AssertionError("a bug")


async def fail_later(body: bytes) -> list[bytes]:
    later = asyncio.get_running_loop().create_future()
    later.get_loop().call_soon(later.set_exception, AssertionError("a bug"))
    await later
    return []


@pytest.mark.parametrize("bad", [violate, fail])
def test_what_was_asked_before_a_request_that_ends_the_connection_is_answered(world: World, bad: Handle) -> None:
    side = world.side(lambda body: bad(body) if body == b"bad" else echo(body))

    async def main() -> None:
        await side.send(frame(b"good") + frame(b"bad") + frame(b"late"))
        assert await side.receive(11) == frame(b"re:good")
        assert await side.ended()
        assert side.handled == [b"good", b"bad"]

    world.run(main)


@pytest.mark.parametrize(("handle", "told"), [(violate, False), (fail, True), (fail_later, True)])
def test_who_breaks_the_protocol_is_not_news_but_a_bug_is(
    world: World, handle: Handle, told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    side = world.side(handle)

    async def main() -> None:
        await side.send(frame(b"x"))
        assert await side.ended()

    with caplog.at_level(logging.INFO):
        world.run(main)
    assert ("a bug" in caplog.text) is told


def test_what_a_client_sent_before_it_closed_is_handled(world: World) -> None:
    side = world.side(lambda body: NO_RESPONSE)

    async def main() -> None:
        await side.send(frame(b"last words") * 100)
        side.client.close()
        await until(lambda: side.closed_connections)
        assert side.handled == [b"last words"] * 100

    world.run(main)


def test_a_client_that_goes_while_its_request_waits_is_noticed_and_the_request_abandoned(world: World) -> None:
    abandoned: list[bool] = []

    async def wait(body: bytes) -> list[bytes]:
        try:
            await world.runtime.loop.create_future()
        finally:
            abandoned.append(True)
        return []

    side = world.side(wait)

    async def main() -> None:
        await side.send(frame(b"poll"))
        await settle()
        assert abandoned == []
        side.client.close()
        await until(lambda: side.closed_connections)
        assert abandoned == [True]

    world.run(main)


def test_a_produce_that_is_being_checked_when_its_client_goes_is_finished_and_so_is_what_came_behind_it(world: World) -> None:
    checked: asyncio.Future[None] = world.runtime.loop.create_future()
    appended: list[bytes] = []
    first, second = request(ApiKey.PRODUCE, b"1"), request(ApiKey.PRODUCE, b"2")

    def handle(body: bytes) -> Any:
        async def append() -> Any:
            await checked
            appended.append(body)
            return NO_RESPONSE

        return append()

    side = world.side(handle)

    async def main() -> None:
        await side.send(frame(first) + frame(second))
        await settle()
        side.client.close()
        await settle()
        assert appended == [] and not side.closed_connections
        checked.set_result(None)
        await until(lambda: side.closed_connections)
        assert appended == [first, second]

    world.run(main)


class Later(Waiting):
    """A request that waits until the test resumes it; ``produce`` as one whose records are in the log."""

    def __init__(self, body: bytes, *, produce: bool = True) -> None:
        super().__init__(ParkedAppend(1 << 50, -1))
        self.body = body
        self.lets_next_in = produce

    def go_on(self) -> Any:
        return echo(self.body)


def request(api_key: ApiKey, name: bytes) -> bytes:
    """A body that begins as requests do."""
    return api_key.to_bytes(2, "big") + name


def test_a_produce_is_handled_while_the_one_before_it_waits_and_answered_behind_it(world: World) -> None:
    bodies = [request(ApiKey.PRODUCE, b"%d" % number) for number in range(4)]
    waiting = {body: Later(body) for body in bodies[:3]}
    side = world.side(lambda body: waiting.get(body) or echo(body))

    async def main() -> None:
        await side.send(frame(bodies[0]) + frame(bodies[1]))
        await until(lambda: side.handled == bodies[:2])
        await side.send(b"".join(map(frame, bodies[2:])))
        await until(lambda: side.handled == bodies)
        waiting[bodies[1]].parked.finish()
        waiting[bodies[2]].parked.finish()
        await settle()
        with pytest.raises(BlockingIOError):
            side.client.recv(1)
        waiting[bodies[0]].parked.finish()
        expected = b"".join(echo(body)[0] for body in bodies)
        assert await side.receive(len(expected)) == expected

    world.run(main)


@pytest.mark.parametrize("produce", [True, False])
def test_other_requests_wait_for_a_produce_and_all_wait_for_a_fetch(world: World, produce: bool) -> None:
    first = Later(request(ApiKey.PRODUCE, b"first"), produce=produce)
    second = request(ApiKey.METADATA if produce else ApiKey.PRODUCE, b"second")
    side = world.side(lambda body: first if body == first.body else echo(body))

    async def main() -> None:
        await side.send(frame(first.body) + frame(second))
        await settle()
        assert side.handled == [first.body]
        first.parked.finish()
        expected = echo(first.body)[0] + echo(second)[0]
        assert await side.receive(len(expected)) == expected

    world.run(main)


def test_a_request_that_waits_twice_is_answered_once(world: World) -> None:
    class Twice(Later):
        def go_on(self) -> Any:
            return second

    first, second = Twice(b"first"), Later(b"second")
    side = world.side(lambda body: first)

    async def main() -> None:
        await side.send(frame(b"poll"))
        await settle()
        first.parked.finish()
        await settle()
        second.parked.finish()
        assert await side.receive(13) == frame(b"re:second")

    world.run(main)


@pytest.mark.parametrize("bad", [violate, fail, lambda _: CLOSE_CONNECTION])
def test_a_connection_that_has_to_end_does_so_behind_the_answers_that_wait(world: World, bad: Handle) -> None:
    good, ill = request(ApiKey.PRODUCE, b"good"), request(ApiKey.PRODUCE, b"ill")
    waiting = Later(good)
    side = world.side(lambda body: waiting if body == good else bad(body))

    async def main() -> None:
        await side.send(frame(good) + frame(ill) + frame(ill))
        await settle()
        assert side.handled == [good, ill] and not side.closed_connections
        waiting.parked.finish()
        assert await side.receive(len(echo(good)[0])) == echo(good)[0]
        assert await side.ended()
        assert side.handled == [good, ill]

    world.run(main)


@pytest.mark.parametrize("bad", [violate, fail, lambda _: CLOSE_CONNECTION])
def test_answers_that_were_there_before_one_that_waits_are_not_lost_with_the_connection(world: World, bad: Handle) -> None:
    safe, good, ill = (request(ApiKey.PRODUCE, name) for name in (b"safe", b"good", b"ill"))
    waiting = Later(good)
    side = world.side(lambda body: bad(body) if body == ill else waiting if body == good else echo(body))

    async def main() -> None:
        await side.send(frame(safe) + frame(good) + frame(ill))
        await until(lambda: side.handled == [safe, good, ill])
        waiting.parked.finish()
        expected = echo(safe)[0] + echo(good)[0]
        assert await side.receive(len(expected)) == expected
        assert await side.ended()

    world.run(main)


def test_a_produce_that_was_checked_after_its_client_had_gone_watches_nothing(world: World) -> None:
    body = request(ApiKey.PRODUCE, b"checked")
    waiting = Later(body)
    checked = world.runtime.loop.create_future()

    async def check() -> Waiting:
        await checked
        return waiting

    def produce(_: bytes) -> Any:
        return check()

    side = world.side(produce)

    async def main() -> None:
        await side.send(frame(body))
        await until(lambda: side.handled)
        side.client.close()
        await settle()
        assert not side.closed_connections
        checked.set_result(None)
        await until(lambda: side.closed_connections)
        assert waiting.parked.done

    world.run(main)


def test_a_client_that_goes_leaves_nobody_waiting_and_what_it_sent_is_handled(world: World) -> None:
    waiting = [Later(request(ApiKey.PRODUCE, b"%d" % number)) for number in range(3)]
    side = world.side(lambda body: waiting[int(body[2:])])

    async def main() -> None:
        await side.send(frame(waiting[0].body) + frame(waiting[1].body))
        await until(lambda: len(side.handled) == 2)
        await side.send(frame(waiting[2].body))
        side.client.close()
        await until(lambda: side.closed_connections)
        assert side.handled == [each.body for each in waiting]
        assert all(each.parked.done for each in waiting)

    world.run(main)


def test_a_draining_connection_sends_the_answers_that_wait_and_closes(world: World) -> None:
    first, second = Later(request(ApiKey.PRODUCE, b"first")), request(ApiKey.PRODUCE, b"second")
    side = world.side(lambda body: first if body == first.body else echo(body))

    async def main() -> None:
        await side.send(frame(first.body))
        await settle()
        side.connection.machine.drain()
        await side.send(frame(second))
        await settle()
        assert side.handled == [first.body] and not side.closed_connections
        first.parked.finish()
        assert await side.receive(len(echo(first.body)[0])) == echo(first.body)[0]
        assert await side.ended()

    world.run(main)


def test_a_slow_reader_gets_the_answers_that_waited_in_order(world: World) -> None:
    content = bytes(range(256)) * 16384
    large = [len(content).to_bytes(4, "big") + content]
    first, second, third = (Later(request(ApiKey.PRODUCE, name)) for name in (b"first", b"second", b"third"))
    second.go_on = lambda: large  # type: ignore[method-assign]
    known = {each.body: each for each in (first, second, third)}
    side = world.side(lambda body: known[body])

    async def main() -> None:
        await side.send(b"".join(map(frame, known)))
        await until(lambda: len(side.handled) == 3)
        second.parked.finish()
        first.parked.finish()
        await settle()
        third.parked.finish()
        expected = echo(first.body)[0] + large[0] + echo(third.body)[0]
        assert await side.receive(len(expected)) == expected

    world.run(main)


def test_answers_that_only_their_reader_holds_up_are_not_waited_for(world: World) -> None:
    content = bytes(1 << 24)
    first, second = (Later(request(ApiKey.PRODUCE, name)) for name in (b"first", b"second"))
    first.go_on = lambda: [len(content).to_bytes(4, "big") + content]  # type: ignore[method-assign]
    known = {each.body: each for each in (first, second)}
    side = world.side(lambda body: known[body])

    async def main() -> None:
        await side.send(b"".join(map(frame, known)))
        await until(lambda: len(side.handled) == 2)
        assert side.connection.machine.waiting
        first.parked.finish()
        await settle()
        assert side.connection.machine.waiting
        second.parked.finish()
        await settle()
        assert side.connection.machine.busy and not side.connection.machine.waiting

    world.run(main)


class Content:
    """A file that the simulator might have."""

    path = "memory"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, position: int, length: int) -> bytes:
        return self.data[position : position + length]


def test_a_slow_reader_stops_being_served_until_it_reads(world: World) -> None:
    content = bytes(range(256)) * 16384
    file: Any = Content(content)
    side = world.side(lambda body: [len(content).to_bytes(4, "big"), FileSlice(file, 0, len(content))])

    async def main() -> None:
        await side.send(frame(b"x") * 50)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(side.handled) == 1
        assert await side.receive(2 * (4 + len(content))) == (len(content).to_bytes(4, "big") + content) * 2
        await settle()
        assert 2 <= len(side.handled) <= 4

    world.run(main)


def test_a_file_that_cannot_be_read_ends_that_connection_and_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Content):
        def read(self, position: int, length: int) -> bytes:
            raise OSError(5, "Input/output error")

    file: Any = Broken(b"")
    side = world.side(lambda body: [b"head", FileSlice(file, 0, 100)])

    async def main() -> None:
        await side.send(frame(b"x"))
        await until(lambda: side.closed_connections)

    world.run(main)
    assert "cannot be read: [Errno 5] Input/output error" in caplog.text


def test_draining_answers_what_is_in_flight_and_nothing_else(world: World) -> None:
    release: asyncio.Future[None] = world.runtime.loop.create_future()

    async def wait(body: bytes) -> list[bytes]:
        await release
        return echo(body)

    side = world.side(wait)
    idle = world.side(echo)

    async def main() -> None:
        await side.send(frame(b"a") + frame(b"b"))
        await settle()
        side.connection.machine.drain()
        idle.connection.machine.drain()
        assert idle.closed_connections == [idle.connection]
        assert side.closed_connections == []
        release.set_result(None)
        assert await side.receive(8) == frame(b"re:a")
        assert await side.ended()
        assert side.handled == [b"a"]

    world.run(main)


def test_an_idle_connection_gives_its_memory_back(world: World) -> None:
    side = world.side(echo, max_request_bytes=1 << 20)

    async def main() -> None:
        await side.send(frame(b"x" * 500_000))
        await side.receive(500_007)
        assert side.connection.machine.frames.capacity >= 500_000
        side.connection.shrink()
        assert side.connection.machine.frames.capacity < 10_000
        await side.send(frame(b"again"))
        assert await side.receive(12) == frame(b"re:again")

    world.run(main)


def test_closing_twice_is_closing_once(world: World) -> None:
    side = world.side(echo)
    side.connection.close()
    side.connection.close()
    assert side.closed_connections == [side.connection]
