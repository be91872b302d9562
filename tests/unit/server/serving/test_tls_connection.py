"""A connection under TLS: what the selector cannot see."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld
from tests.unit.server.serving.test_connection import Later, World, echo, frame
from tests.unit.server.serving.tls_pairs import client_context, listener, secured_pair
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.server.serving.tls_connection import TlsConnection
from tidelog.server.serving.tls_transport import TlsTransport
from tidelog.server.serving.violations import Violations

BIG = 300_000


class Side:
    """A TLS connection whose requests are answered by ``handle``, and the client's end of it."""

    def __init__(self, world: World, handle: Callable[[bytes], Any], early: bytes = b"") -> None:
        self.runtime, self.turn = world.runtime, world.turn
        self.handled: list[bytes] = []
        self.violations = Violations()
        self.closed_connections = 0
        self.metered = False
        self.read_step = None
        self.sasl = None
        self.times = RequestTimes(world.runtime.busy_ns)
        ours, self.client = secured_pair(listener().context, client_context())

        def dispatch(session: Session, view: memoryview) -> Any:
            self.handled.append(bytes(view))
            return handle(bytes(view))

        self.handle: Callable[[Session, memoryview], Any] = dispatch
        if early:
            self.client.send(early)
        self.transport = TlsTransport(ours)
        if early:
            assert not self.transport.peer_has_ended()  # OpenSSL now holds all of it, and the socket is silent
        self.connection = TlsConnection(self, self.transport, NodeWorld().session(), 1_000_000)

    def authenticated(self, connection: Any) -> None:
        raise AssertionError("no client logs in")

    def too_late(self, connection: Any, within_s: float) -> None:
        raise AssertionError("no client logs in")

    def closed(self, connection: Any) -> None:
        self.closed_connections += 1

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.client.send(view[:16_000]) :]
            except ssl.SSLWantWriteError:
                await asyncio.sleep(0)

    async def receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self.client.recv(count - len(data))
            except ssl.SSLWantReadError:
                await asyncio.sleep(0)
                continue
            if not more:
                return data
            data += more
        return data


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def test_requests_of_every_size_are_answered(world: World) -> None:
    async def main() -> None:
        side = Side(world, lambda body: [frame(body)])
        for body in (b"small", b"x" * 20_000, b"y" * BIG, b"", b"z"):
            await side.send(frame(body))
            assert await side.receive(4 + len(body)) == frame(body)
        await side.send(b"".join(frame(b"%d" % each) for each in range(200)))
        expected = b"".join(frame(b"%d" % each) for each in range(200))
        assert await side.receive(len(expected)) == expected
        side.connection.close()

    world.run(main)


def test_a_request_that_openssl_already_holds_is_answered(world: World) -> None:
    async def main() -> None:
        side = Side(world, lambda body: [frame(body)], early=frame(b"first"))
        assert await side.receive(9) == frame(b"first")
        side.connection.close()

    world.run(main)


def test_a_request_behind_one_that_waits_is_answered_when_that_is_done(world: World) -> None:
    async def main() -> None:
        waits = Later(b"wait", produce=False)
        side = Side(world, lambda body: waits if body == b"wait" else [frame(body)])
        await side.send(frame(b"wait") + frame(b"next") + frame(b"last"))
        while not side.handled:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert side.handled == [b"wait"]
        waits.parked.finish()
        expected = b"".join(echo(b"wait")) + frame(b"next") + frame(b"last")
        assert await side.receive(len(expected)) == expected
        side.connection.close()

    world.run(main)


def test_a_slow_client_gets_its_whole_answer(world: World) -> None:
    answer = frame(bytes(range(256)) * 12_000)

    async def main() -> None:
        side = Side(world, lambda body: [answer])
        await side.send(frame(b"a"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert await side.receive(len(answer)) == answer
        side.connection.close()

    world.run(main)


@pytest.mark.parametrize("waiting", [False, True])
def test_a_client_that_says_goodbye_is_released(world: World, waiting: bool) -> None:
    async def main() -> None:
        side = Side(world, lambda body: Later(body, produce=False))
        if waiting:
            await side.send(frame(b"wait"))
            while not side.handled:  # noqa: ASYNC110
                await asyncio.sleep(0)
        with pytest.raises(ssl.SSLWantReadError):
            side.client.unwrap()
        while not side.closed_connections:  # noqa: ASYNC110
            await asyncio.sleep(0)

    world.run(main)


class Turning(TlsTransport):
    """Its next read wants to write, and its next write to read."""

    turns = 2

    def receive(self, buffer: bytearray | memoryview) -> int:
        self.read_wants_write = self.turns > 0
        if self.read_wants_write:
            self.turns -= 1
            return -1
        return super().receive(buffer)

    def send(self, data: Any) -> int:
        self.write_wants_read = self.turns > -2
        if self.write_wants_read:
            self.turns -= 1
            return 0
        return super().send(data)


def test_a_read_or_a_write_that_waits_for_the_other_direction_is_tried_again(world: World) -> None:
    async def main() -> None:
        side = Side(world, lambda body: [frame(body)])
        side.connection.close()
        ours, side.client = secured_pair(listener().context, client_context())
        side.connection = TlsConnection(side, Turning(ours), NodeWorld().session(), 1_000_000)
        await side.send(frame(b"again"))
        assert await side.receive(9) == frame(b"again")
        side.connection.close()

    world.run(main)
