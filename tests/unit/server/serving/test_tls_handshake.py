"""Handshakes on a listening socket: who gets in, who does not and what the log says, and what strangers may cost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.unit.server.loops import finish, run, until
from tests.unit.server.serving.listening import listener_on
from tests.unit.server.serving.tls_pairs import client_context, listener
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import versions
from tidelog.client.net.async_connection import Asked, Line
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving import tls_handshake
from tidelog.server.serving.listener import ConnectionCount, Limits


class Place:
    """A broker's TLS listener, in the loop of a test."""

    def __init__(self, plain: bool = False, **options: str) -> None:
        self.runtime = LoopRuntime(new_event_loop())
        self.count = ConnectionCount()
        self.tls = None if plain else listener(**options)
        self.listener = listener_on(self.runtime, count=self.count, tls=self.tls)
        self.listener.start()

    async def line(self, context: ssl.SSLContext | None) -> Line:
        """Our own client, connected."""
        line = Line(ClientConnection("me"), Line.close)
        host = "localhost" if context is not None else None
        loop = self.runtime.loop
        await loop.create_connection(lambda: line, "127.0.0.1", self.listener.port, ssl=context, server_hostname=host)
        await line.converse(versions(line.machine), loop)
        return line

    async def served(self, line: Line) -> bool:
        asked = Asked(DescribeClusterRequest(), False, self.runtime.loop.create_future())
        line.send(asked)
        return bool((await asked.answer).error_code == 0)

    async def raw(self) -> socket.socket:
        plain = socket.socket()
        plain.setblocking(False)
        await self.runtime.loop.sock_connect(plain, ("127.0.0.1", self.listener.port))
        return plain

    def run(self, main: Callable[[], Awaitable[Any]]) -> None:
        try:
            run(self.runtime, main)
        finally:
            finish(self.runtime, self.listener)


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


@pytest.mark.parametrize(
    ("auth", "shows", "user"),
    [
        ("none", True, "User:ANONYMOUS"),
        ("requested", False, "User:ANONYMOUS"),
        ("requested", True, "User:CN=me"),
        ("required", True, "User:CN=me"),
    ],
)
def test_a_client_is_who_its_certificate_says(auth: str, shows: bool, user: str) -> None:
    place = Place(client_auth=auth)

    async def main() -> None:
        line = await place.line(client_context(shows=shows))
        assert await place.served(line)
        (connection,) = place.listener.connections
        assert str(connection.machine.session.principal) == user
        assert place.tls is not None
        assert (place.tls.completed, place.tls.failures) == (1, 0)
        line.close(ConnectionAbortedError())
        await until(lambda: not place.count.total)

    place.run(main)


@pytest.mark.parametrize(
    ("options", "context", "said"),
    [
        ({"client_auth": "required"}, client_context(), "the client shows no certificate"),
        ({}, client_context(trusts=False), "does not accept this node's certificate"),
        ({"client_auth": "required", "principal_mapping_rules": "RULE:x/y/"}, client_context(shows=True), "no rule of"),
        ({"enabled_protocols": "TLSv1.2"}, client_context(trusts=False), "does not accept this node's certificate"),
    ],
)
def test_a_handshake_that_fails_is_explained_in_the_log(
    options: dict[str, str], context: ssl.SSLContext, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(**options)

    def handshake() -> None:
        # A blocking client, because asyncio's does not say why it closes.
        with socket.create_connection(("127.0.0.1", place.listener.port)) as plain, pytest.raises(OSError):
            client = context.wrap_socket(plain, server_hostname="localhost")
            client.sendall(b"\0\0\0\0")
            if not client.recv(1):
                raise ConnectionResetError

    async def main() -> None:
        await place.runtime.run_blocking(handshake)
        assert place.tls is not None
        await until(lambda: place.tls is not None and place.tls.failures)
        assert said in caplog.text
        assert (place.count.total, len(place.listener.connections)) == (0, 0)

    place.run(main)


def test_versions_without_overlap_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    place = Place(enabled_protocols="TLSv1.3")
    old = client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2

    async def main() -> None:
        with pytest.raises(OSError):
            await place.line(old)
        await until(lambda: "offers no TLS version" in caplog.text)

    place.run(main)


@pytest.mark.parametrize(("data", "kind"), [(b"\0\0\0\x10\0\x12\0\0", "plain text"), (b"GET / HTTP/1.1\r\n\r\n", "HTTP")])
def test_a_client_without_tls_is_named_in_the_log_and_counted(data: bytes, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    place = Place()

    async def main() -> None:
        plain = await place.raw()
        await place.runtime.loop.sock_sendall(plain, data)
        with pytest.raises(ConnectionResetError):
            assert not await place.runtime.loop.sock_recv(plain, 1)
            raise ConnectionResetError
        assert f"the client speaks {kind}" in caplog.text
        assert place.tls is not None
        assert (place.tls.plain_bytes, place.tls.failures, place.count.total) == (1, 1, 0)
        plain.close()

    place.run(main)


def test_a_tls_client_on_a_plain_listener_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    place = Place(plain=True)

    async def main() -> None:
        with pytest.raises(OSError):
            await place.line(client_context())
        assert "a TLS handshake, but this listener speaks plain text" in caplog.text
        assert place.listener.violations.total == 1

    place.run(main)


def test_a_probe_that_sends_nothing_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()

    async def main() -> None:
        (await place.raw()).close()
        await until(lambda: place.tls is not None and not place.count.total)
        assert place.tls is not None
        assert place.tls.failures == 0
        assert "handshake" not in caplog.text

    place.run(main)


@pytest.mark.parametrize(("data", "said"), [(b"", "sent nothing within"), (b"\x16\x03\x01", "was not complete within")])
def test_a_client_that_stalls_is_disconnected(
    data: bytes, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshake, "WITHIN_S", 0.05)
    place = Place()

    async def main() -> None:
        plain = await place.raw()
        await place.runtime.loop.sock_sendall(plain, data)
        assert not await place.runtime.loop.sock_recv(plain, 1)
        assert said in caplog.text
        assert place.count.total == 0
        plain.close()

    place.run(main)


def test_of_too_many_handshakes_the_oldest_is_closed_and_others_get_in(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshake, "MOST_AT_ONCE", 5)
    place = Place()

    async def main() -> None:
        stalled = [await place.raw() for _ in range(12)]
        for each in stalled:
            await place.runtime.loop.sock_sendall(each, b"\x16\x03\x01")
        silent = await place.raw()
        assert await place.served(await place.line(client_context()))
        assert place.tls is not None
        assert (place.tls.failures, place.tls.completed) == (8, 1)
        assert "this is the oldest" in caplog.text
        for each in (*stalled, silent):
            each.close()
        await until(lambda: place.count.total == 1)

    place.run(main)


def test_handshakes_in_flight_end_with_the_listener() -> None:
    place = Place()

    async def main() -> None:
        stalled, silent = await place.raw(), await place.raw()
        await place.runtime.loop.sock_sendall(stalled, b"\x16")
        await until(lambda: place.count.total == 2)
        place.listener.stop_accepting()
        assert place.count.total == 0
        for each in (stalled, silent):
            each.close()

    place.run(main)


def test_the_oldest_half_open_connection_goes_and_clients_get_in() -> None:
    place = Place()
    place.listener.change_limits(Limits(max_unauthenticated_per_ip=2))

    async def main() -> None:
        early = [await place.line(client_context()) for _ in range(3)]
        half_open = [await place.raw() for _ in range(3)]
        for each in half_open:
            await place.runtime.loop.sock_sendall(each, hello()[:50])
        assert await place.runtime.loop.sock_recv(half_open[0], 1) == b""
        late = await place.line(client_context())
        assert await place.runtime.loop.sock_recv(half_open[1], 1) == b""
        assert len(place.listener.newcomers) == 1
        for each in (*early, late):
            assert await place.served(each)
        for each in half_open:
            each.close()

    place.run(main)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address of the machine")
def test_a_flood_of_handshakes_from_one_address_closes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_handshake, "MOST_AT_ONCE", 2)
    place = Place()

    async def begun(host: str) -> socket.socket:
        client = socket.socket()
        client.setblocking(False)
        client.bind((host, 0))
        await place.runtime.loop.sock_connect(client, ("127.0.0.1", place.listener.port))
        await place.runtime.loop.sock_sendall(client, hello()[:50])
        return client

    async def main() -> None:
        quiet = await begun("127.0.0.1")
        flood = [await begun("127.0.0.2") for _ in range(4)]
        for each in flood[:3]:
            assert await place.runtime.loop.sock_recv(each, 1) == b""
        assert place.count.by_host == {"127.0.0.1": 1, "127.0.0.2": 1}
        for each in (quiet, *flood):
            each.close()

    place.run(main)


def test_many_clients_at_once_all_get_in() -> None:
    place = Place()

    async def main() -> None:
        lines = await asyncio.gather(*(place.line(client_context()) for _ in range(40)))
        assert all(await asyncio.gather(*map(place.served, lines)))

    place.run(main)


def test_a_handshake_in_flight_keeps_the_certificate_it_began_with() -> None:
    place = Place()

    async def main() -> None:
        first = await place.line(client_context())
        assert place.tls is not None
        place.tls.context = listener().context
        assert await place.served(await place.line(client_context()))
        assert await place.served(first)

    place.run(main)


def hello() -> bytes:
    """The first bytes of our own client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_broken_handshakes_end_each_connection_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    rng, first = random.Random(4), hello()

    async def broken() -> None:
        data = bytearray(first)
        for _ in range(rng.choice([1, 3, 40])):
            data[rng.randrange(1, len(data))] = rng.randrange(256)
        data = data[: rng.choice([len(data), rng.randrange(1, len(data))])]
        client = await place.raw()
        with contextlib.suppress(ConnectionError):
            await place.runtime.loop.sock_sendall(client, data + rng.randbytes(rng.choice([0, 5, 2000])))
        client.close()

    async def main() -> None:
        for _ in range(300):
            await broken()
        assert await place.served(await place.line(client_context()))
        await until(lambda: place.count.total == 1)
        assert place.tls is not None
        assert place.tls.failures + place.tls.completed == 301
        assert not [each for each in caplog.records if each.levelno >= logging.ERROR]

    place.run(main)
