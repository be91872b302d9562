from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.certificates import Authority
from tidelog.console.oidc import fetching
from tidelog.console.oidc.fetching import NoAnswer, Reply, asker

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


def asked(serve: Serve, tls: ssl.SSLContext | None = None, scheme: str = "http", **request: Any) -> Reply:
    """What a server answers that handles one connection."""

    async def job() -> Reply:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls if scheme == "https" else None)
        port = server.sockets[0].getsockname()[1]
        try:
            return await asker(request.pop("trusted", ssl.create_default_context()))(
                f"{scheme}://127.0.0.1:{port}/p?q=1", **request
            )
        finally:
            server.close()

    return asyncio.run(job())


def answering(*pieces: bytes, then_close: bool = True) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
        if then_close:
            writer.close()
        else:
            await reader.read()

    return serve


def test_an_answer_and_what_was_sent() -> None:
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        seen.append(await reader.readexactly(3))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()

    assert asked(serve, body=b"a=b", headers={"X-More": "1"}) == Reply(200, "application/json", b"{}")
    assert seen[0].startswith(b"POST /p?q=1 HTTP/1.1\r\n")
    assert b"X-More: 1\r\n" in seen[0]
    assert seen[1] == b"a=b"


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    reply = asked(answering(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"))
    assert reply.status == 302


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([], "does not answer|closed"),
        ([b"SSH-2.0-x\r\n\r\n"], "does not answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"], "does not answer|closed"),
        ([b"HTTP/1.1 200 OK\r\nX: ", b"a" * 200_000], "does not answer"),
        ([b"HTTP/1.1 200 OK\r\n\r\n", b"a" * (fetching.MAX_BYTES + 1)], "more than"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"a" * (fetching.MAX_BYTES + 1)], "more than"),
    ],
)
def test_an_answer_that_is_cut_broken_or_too_long_is_none(pieces: list[bytes], reason: str) -> None:
    with pytest.raises(NoAnswer, match=reason):
        asked(answering(*pieces))


@pytest.mark.parametrize("pieces", [[], [b"HTTP/1.1 200 OK\r\n"], [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"]])
def test_an_answer_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    monkeypatch.setattr(fetching, "TOTAL_S", 0.05)
    with pytest.raises(NoAnswer, match="did not answer within"):
        asked(answering(*pieces, then_close=False))


def test_an_answer_that_drips_is_given_up_however_often_a_byte_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TOTAL_S", 0.05)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0)

    with pytest.raises(NoAnswer):
        asked(serve)


def test_where_nothing_listens_there_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:1 does not answer"):
        asyncio.run(asker(ssl.create_default_context())("http://127.0.0.1:1/"))


def test_a_certificate_of_an_authority_that_is_not_trusted_ends_it(tmp_path: Any) -> None:
    authority = Authority()
    (tmp_path / "pair.pem").write_text(authority.issue("127.0.0.1", "127.0.0.1").both)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    answer = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", then_close=False)
    trusted = ssl.create_default_context(cadata=authority.pem)
    assert asked(answer, context, "https", trusted=trusted).status == 200
    with pytest.raises(NoAnswer, match="certificate"):
        asked(answer, context, "https")
