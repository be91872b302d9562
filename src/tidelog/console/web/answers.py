"""Answers: JSON, compressed where the browser takes that, and streams of JSON lines with a limit for slow readers."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidelog.console.web.ending import STREAM, Ending
from tidelog.console.web.problems import Problem

COMPRESSED_FROM: Final = 1024
ASIDE_FROM: Final = 64 << 10
"""Bytes: smaller answers take less time to compress than a thread to begin."""
BEAT_S: Final = 10.0
SLOWEST_S: Final = 30.0
"""How long a browser may take to accept one piece of a stream."""
LAST_S: Final = 1.0
"""How long it may take to accept the last line, at the console's end."""
PIECE_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Answer:
    """The data of a read: when the cluster was asked, and (what, error) of the parts that are missing."""

    data: Any
    as_of_ms: int | None = None
    partial: tuple[tuple[str, str], ...] = ()


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; half surrogates stay escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def json_response(value: Any, *, accepts_gzip: bool) -> Response:
    """A whole answer."""
    body = encoded(value)
    return _response(_compressed(body), gzipped=True) if accepts_gzip and len(body) >= COMPRESSED_FROM else _response(body)


async def json_answer(value: Any, *, accepts_gzip: bool) -> Response:
    """A whole answer; a large one is compressed in a thread."""
    body = encoded(value)
    if not accepts_gzip or len(body) < COMPRESSED_FROM:
        return _response(body)
    aside = len(body) >= ASIDE_FROM
    return _response(await asyncio.to_thread(_compressed, body) if aside else _compressed(body), gzipped=True)


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, 5, mtime=0)


def _response(body: bytes, *, gzipped: bool = False) -> Response:
    headers = {"Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if gzipped else {})}
    return Response(body, 200, headers, "application/json")


def problem_response(problem: Problem) -> Response:
    response = Response(encoded(problem.as_json()), problem.status, media_type="application/problem+json")
    if problem.retry_after_s is not None:
        response.headers["Retry-After"] = str(problem.retry_after_s)
    return response


def wrapped(answer: Any, now_ms: int) -> Mapping[str, Any]:
    """What a handler returned, as every answer looks."""
    found = answer if isinstance(answer, Answer) else Answer(answer)
    return {
        "data": found.data,
        "as_of_ms": str(now_ms if found.as_of_ms is None else found.as_of_ms),
        "partial": [{"what": what, "error": error} for what, error in found.partial],
    }


class Lines(Response):
    """A stream of JSON lines. It ends when the browser leaves, or takes longer than ``SLOWEST_S`` for a piece; while nothing
    comes, a line says so. At the console's end its last line says that. ``on_end`` is called once, in every case."""

    media_type = "application/x-ndjson"

    def __init__(self, lines: AsyncIterator[Mapping[str, Any]], on_end: Callable[[], Awaitable[None]], ending: Ending) -> None:
        super().__init__(None)
        self._lines = lines
        self._ending = ending
        self._began = False
        self._on_end = on_end
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        writing = loop.create_task(self._write(send))
        leaving = loop.create_task(_left(receive))
        ending = loop.create_task(self._ending.wait())
        tasks = (writing, leaving, ending)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._on_end()
        if done == {ending} and self._began:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_S):
                    last = {"kind": "problem", "partition": None, "error": STREAM}
                    await send({"type": "http.response.body", "body": encoded(last) + b"\n", "more_body": False})

    async def _write(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        self._began = True
        following = loop.create_task(_next(self._lines))
        try:
            while True:
                done, _ = await asyncio.wait({following}, timeout=BEAT_S)
                if not done:
                    await _send(send, encoded({"kind": "beat"}) + b"\n")
                    continue
                line = following.result()
                if line is None:
                    await _send(send, b"", more=False)
                    return
                following = loop.create_task(_next(self._lines))
                await _send(send, encoded(line) + b"\n")
        except TimeoutError:
            return
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self._lines.aclose()  # type: ignore[attr-defined]


async def _next(lines: AsyncIterator[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return await anext(lines, None)


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    async with asyncio.timeout(SLOWEST_S):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
