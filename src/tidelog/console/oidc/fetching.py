"""HTTP to a provider, with h11 on the loop: a limit on time and size, no redirects, so that only named addresses are asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import h11

TOTAL_S: Final = 10.0
"""From the look-up of the name until the last byte."""
MAX_BYTES: Final = 512 << 10
MAX_HEAD: Final = 64 << 10
PIECE: Final = 64 << 10


class NoAnswer(Exception):
    """The provider cannot be reached, or its answer is cut, too long or too late."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. ``kind``: its media type without parameters."""

    status: int
    kind: str
    body: bytes


Ask = Callable[..., Awaitable[Reply]]


def asker(tls: ssl.SSLContext) -> Ask:
    """Sends requests; TLS ends at the authorities of ``tls``."""

    async def ask(url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Reply:
        """GET, or POST of a body. NoAnswer."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        encrypted = parts.scheme == "https"
        port = parts.port or (443 if encrypted else 80)
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(TOTAL_S):
                reader, writer = await asyncio.open_connection(host, port, ssl=tls if encrypted else None)
                return await _asked(reader, writer, parts, body, headers or {})
        except TimeoutError:
            raise NoAnswer(f"{host}:{port} did not answer within {TOTAL_S:.0f} s") from None
        except (OSError, h11.RemoteProtocolError, UnicodeError) as error:
            raise NoAnswer(f"{host}:{port} does not answer: {error}") from None
        finally:
            if writer is not None:
                writer.transport.abort()

    return ask


async def _asked(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: Any, body: bytes | None, headers: Mapping[str, str]
) -> Reply:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    fields = {
        "Host": parts.netloc,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "tidelog-console",
        "Connection": "close",
        **headers,
    }
    if body is not None:
        fields["Content-Length"] = str(len(body))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    request = h11.Request(method="GET" if body is None else "POST", target=target, headers=list(fields.items()))
    sent = [connection.send(request), connection.send(h11.Data(body)) if body else b"", connection.send(h11.EndOfMessage())]
    writer.write(b"".join(each or b"" for each in sent))
    await writer.drain()
    status, kind, found = 0, "", bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(PIECE))
        elif isinstance(event, h11.Response):
            status = event.status_code
            kind = dict(event.headers).get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        elif isinstance(event, h11.Data):
            found += event.data
            if len(found) > MAX_BYTES:
                raise NoAnswer(f"{parts.netloc} answers with more than {MAX_BYTES} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return Reply(status, kind, bytes(found))
        elif not isinstance(event, h11.InformationalResponse):
            raise NoAnswer(f"{parts.netloc} closed the connection before its answer was whole")
