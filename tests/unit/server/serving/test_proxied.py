"""PROXY headers on a listening socket: who is believed, what a client counts as, and what a balancer may cost."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.server.serving.listening import ListenerWorld
from tests.unit.server.serving.test_connection import until
from tests.unit.server.serving.test_listener import REQUEST
from tests.unit.server.serving.tls_pairs import client_context
from tests.unit.server.serving.tls_pairs import listener as tls_listener
from tidelog.server.serving import proxied
from tidelog.server.serving.listener import Limits, Listener

HERE = ipaddress.ip_network("127.0.0.1/32")
ELSEWHERE = ipaddress.ip_network("198.51.100.0/24")
LINE = b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n"
BINARY = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x28" + ipaddress.ip_address("2001:db8::7").packed + bytes(20) + b"\x03\0\x01x"
LOCAL = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"


class World(ListenerWorld):
    def listen(self, *networks: Any, tls: bool = False, **limits: Any) -> Listener:
        return self.started(Limits(**limits), tls=tls_listener() if tls else None, balancers=networks or (ELSEWHERE, HERE))

    async def connect(self, listener: Listener, *parts: bytes) -> socket.socket:
        """A connection that has sent these bytes, each after the one before was read."""
        client = await super().connect(listener)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            await self.runtime.loop.sock_sendall(client, part)
            await asyncio.sleep(0)
        return client

    async def ended(self, client: socket.socket) -> bool:
        try:
            return not await self.runtime.loop.sock_recv(client, 100)
        except ConnectionResetError:
            return True

    async def answered(self, client: socket.socket) -> bool:
        return bool(await self.runtime.loop.sock_recv(client, 100))


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def hosts(listener: Listener) -> list[str]:
    return [each.machine.session.peer_host for each in listener.connections]


@pytest.mark.parametrize(("header", "host"), [(LINE, "192.0.2.7"), (BINARY, "2001:db8::7"), (LOCAL, "127.0.0.1")])
@pytest.mark.parametrize("cut", [0, 1, 7, 14])
def test_a_connection_counts_as_the_clients_that_its_header_names(world: World, header: bytes, host: str, cut: int) -> None:
    """However the bytes arrive; those after the header are the client's, and all of them."""
    listener = world.listen()

    async def main() -> None:
        data = header + REQUEST
        client = await world.connect(listener, *(data[:cut], data[cut:]) if cut else (data,))
        assert await world.answered(client)
        assert hosts(listener) == [host]
        assert dict(world.count.by_host) == {host: 1}
        client.close()
        await until(lambda: not listener.connections)
        assert dict(world.count.by_host) == {}

    world.run(main)


def test_every_cut_of_a_header_is_put_together(world: World) -> None:
    listener = world.listen()

    async def main() -> None:
        client = await world.connect(listener)
        for at in range(len(LINE)):
            await world.runtime.loop.sock_sendall(client, LINE[at : at + 1])
            await until(lambda at=at: at == len(LINE) - 1 or _kept(listener) == at + 1)  # type: ignore[misc]
        await world.runtime.loop.sock_sendall(client, REQUEST)
        assert await world.answered(client)
        assert hosts(listener) == ["192.0.2.7"]

    world.run(main)


def _kept(listener: Listener) -> int:
    assert listener.proxied is not None
    return sum(len(each.kept) for each in listener.proxied._waiting)


def test_limits_are_those_of_the_client(world: World) -> None:
    listener = world.listen(max_connections_per_ip=1)

    async def main() -> None:
        first = await world.connect(listener, LINE + REQUEST)
        assert await world.answered(first)
        assert await world.ended(await world.connect(listener, LINE + REQUEST))
        assert await world.answered(await world.connect(listener, LINE.replace(b"2.7", b"2.8") + REQUEST))

    world.run(main)


@pytest.mark.parametrize("data", [REQUEST, b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x00\x05", LINE.replace(b" 443", b"")])
def test_a_balancer_that_sends_no_header_is_refused(world: World, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    listener = world.listen()

    async def main() -> None:
        with caplog.at_level(logging.WARNING):
            assert await world.ended(await world.connect(listener, data))
        assert listener.proxied is not None
        assert (listener.proxied.refused, len(listener.proxied), world.count.total) == (1, 0, 0)
        assert "listener EXTERNAL: a connection of 127.0.0.1 has no PROXY header" in caplog.text

    world.run(main)


@pytest.mark.parametrize("header", [LINE, BINARY])
@pytest.mark.parametrize("tls", [False, True])
def test_the_header_of_any_other_peer_is_garbage(world: World, header: bytes, tls: bool) -> None:
    listener = world.listen(ELSEWHERE, tls=tls)

    async def main() -> None:
        assert await world.ended(await world.connect(listener, header + REQUEST))
        assert not listener.connections

    world.run(main)


def test_a_peer_that_is_not_listed_needs_no_header(world: World) -> None:
    listener = world.listen(ELSEWHERE)

    async def main() -> None:
        assert await world.answered(await world.connect(listener, REQUEST))
        assert hosts(listener) == ["127.0.0.1"]

    world.run(main)


def test_the_header_comes_before_tls(world: World) -> None:
    listener = world.listen(tls=True)

    def client() -> bytes:
        with socket.create_connection(("127.0.0.1", listener.port), 10) as plain:
            plain.sendall(BINARY)
            with client_context().wrap_socket(plain, server_hostname="localhost") as secured:
                secured.sendall(REQUEST)
                return secured.recv(100)

    async def main() -> None:
        asking = world.runtime.run_blocking(client)
        await until(lambda: hosts(listener) == ["2001:db8::7"])
        assert await asking

    world.run(main)


def test_a_header_that_does_not_come_ends_the_connection(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxied, "WITHIN_S", 0.05)
    listener = world.listen()

    async def main() -> None:
        assert await world.ended(await world.connect(listener))
        assert await world.ended(await world.connect(listener, LINE[:10]))
        assert listener.proxied is not None
        assert listener.proxied.refused == 2

    world.run(main)


def test_the_oldest_of_too_many_is_closed_and_probes_leave_no_trace(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxied, "MOST_AT_ONCE", 3)
    listener = world.listen()

    async def main() -> None:
        found = listener.proxied
        assert found is not None
        clients = [await world.connect(listener, LINE[:5]) for _ in range(4)]
        assert await world.ended(clients[0])
        assert (len(found), found.refused) == (3, 1)
        for client in clients[1:]:
            client.close()
        await until(lambda: not len(found))
        assert found.refused == 1
        waiting = await world.connect(listener, LINE[:5])
        await until(lambda: len(found) == 1)
        listener.stop_accepting()
        assert await world.ended(waiting)

    world.run(main)
