"""The HTTP server over a real socket: what it answers, and what a stranger may cost."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable

import pytest

from tidelog.model.errors import ConfigError
from tidelog.server.runtime import new_event_loop
from tidelog.server.upkeep import http
from tidelog.server.upkeep.http import Answer, HttpServer, Reader


async def hello(reader: Reader) -> Answer:
    return Answer(200, b"hello\n")


async def broken(reader: Reader) -> Answer:
    raise RuntimeError("no")


def with_server(talk: Callable[[int, HttpServer], Awaitable[None]], *, timeout_s: float = 10.0) -> None:
    """Run ``talk`` against a server on a free port."""

    async def run() -> None:
        server = HttpServer({"/hello": hello, "/broken": broken}, timeout_s=timeout_s)
        _, port = await server.start("127.0.0.1", 0)
        try:
            await asyncio.wait_for(talk(port, server), 30)
        finally:
            await server.close()

    asyncio.run(run())


async def send(port: int, *requests: bytes) -> bytes:
    """All that comes back until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(requests))
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


LAST = b"Connection: close\r\n"


def get(path: str, headers: bytes = b"", method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n".encode() + headers + b"\r\n"


def test_a_page_is_served_by_its_path_whatever_the_query() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        answer = await send(port, get("/hello?a=b", LAST))
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"Content-Length: 6\r\n" in answer
        assert answer.endswith(b"\r\n\r\nhello\n")

    with_server(talk)


def test_a_connection_serves_one_request_after_another_even_when_they_come_at_once() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        answer = await send(port, get("/hello"), get("/nope"), get("/hello", LAST))
        assert re.findall(rb"HTTP/1\.1 (\d+) ", answer) == [b"200", b"404", b"200"]

    with_server(talk)


def test_head_has_the_headers_alone() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        answer = await send(port, get("/hello", LAST, "HEAD"))
        assert b"Content-Length: 6\r\n" in answer
        assert answer.endswith(b"\r\n\r\n")

    with_server(talk)


def test_other_methods_are_refused_and_their_bodies_not_read() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        answer = await send(port, get("/hello", b"Content-Length: 1000000000\r\n", "POST"))
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert b"Allow: GET, HEAD\r\n" in answer
        assert b"Connection: close\r\n" in answer
        assert (await send(port, get("/hello", b"Transfer-Encoding: chunked\r\n"))).startswith(b"HTTP/1.1 200 ")

    with_server(talk)


def test_a_page_that_fails_is_our_fault_and_ends_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(port: int, server: HttpServer) -> None:
        assert (await send(port, get("/broken"))).startswith(b"HTTP/1.1 500 ")
        assert (await send(port, get("/hello", LAST))).startswith(b"HTTP/1.1 200 ")

    with_server(talk)
    assert "GET /broken failed" in caplog.text


@pytest.mark.parametrize(
    "garbage",
    [b"\x00\x00\x00\x01\x00\x12", b"GET\r\n\r\n", b"GET /hello HTTP/1.1\r\nno colon\r\n\r\n", b"GET /hello HTTP/1.1\r\n\r\n"],
)
def test_what_is_no_request_is_answered_with_400(garbage: bytes) -> None:
    async def talk(port: int, server: HttpServer) -> None:
        assert (await send(port, garbage, b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")

    with_server(talk)


def test_headers_are_bounded() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        answer = await send(port, get("/hello", b"X: " + b"x" * (2 * http.MAX_HEADER_BYTES) + b"\r\n"))
        assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")) or answer == b""

    with_server(talk)


def test_who_says_nothing_is_not_waited_for() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        assert await send(port, b"GET /hel") == b""

    with_server(talk, timeout_s=0.05)


def test_connections_are_bounded_and_the_oldest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 2)

    async def talk(port: int, server: HttpServer) -> None:
        silent = []
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /hel")
            silent.append((reader, writer))
        assert (await send(port, get("/hello", b"Connection: close\r\n"))).endswith(b"hello\n")
        for reader, _ in silent[:4]:
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        assert len(server._conversations) <= 2
        reader, writer = silent[4]
        writer.write(b"lo HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"hello\n")
        for _, writer in silent:
            writer.close()

    with_server(talk)


def test_a_port_in_use_is_named() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        with pytest.raises(ConfigError, match=rf"tidelog.http.listener is 127.0.0.1:{port}, but the node cannot listen there"):
            await HttpServer({}).start("127.0.0.1", port)

    with_server(talk)


def test_closing_ends_conversations_that_are_open() -> None:
    async def talk(port: int, server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/hello"))
        await reader.readuntil(b"hello\n")
        await server.close()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()

    with_server(talk)


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, new_event_loop])
def test_a_large_answer_arrives_whole_although_the_connection_ends_with_it(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    size = 90_000
    answered: list[bool] = []

    async def page(reader: Reader) -> Answer:
        answered.append(True)
        return Answer(200, bytes(size))

    async def main() -> None:
        server = HttpServer({"/page": page})
        _, port = await server.start("127.0.0.1", 0)
        assert server._server is not None
        for listening in server._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, get("/page", LAST))
        for _ in range(1000):
            # Until the answer is there, and for as long as it takes to end the connection behind it.
            await asyncio.sleep(0)
        assert answered
        got = 0
        with contextlib.suppress(ConnectionResetError):
            while data := await loop.sock_recv(client, 4096):
                got += len(data)
        assert got > size
        client.close()
        await server.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(asyncio.wait_for(main(), 30))
