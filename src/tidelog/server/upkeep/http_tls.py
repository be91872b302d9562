"""TLS under the HTTP server: one connection's handshake and records, over asyncio's streams.

The streams' limits stay in force: a handshake counts as a connection from its first byte, and its time is bounded by the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")

READ_BYTES = 16 * 1024


class TlsStream:
    """The node's side of a connection. OSError (ssl.SSLError) when the peer breaks the protocol or is refused."""

    def __init__(self, context: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=True)

    async def handshake(self) -> None:
        """Returns when the connection is secure."""
        await self._step(self._tls.do_handshake)

    async def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; empty when the peer has ended the connection."""
        try:
            return await self._step(partial(self._tls.read, size))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def write(self, data: bytes) -> None:
        """Encrypts; ``drain`` waits until it was sent."""
        self._tls.write(data)
        self._writer.write(self._to_send.read())

    async def drain(self) -> None:
        await self._writer.drain()

    def write_eof(self) -> None:
        """The last bytes were written."""
        # It wants the peer's own end of the connection, which is not waited for.
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._writer.write(self._to_send.read())
        self._writer.write_eof()

    async def _step(self, step: Callable[[], T]) -> T:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._reader.read(READ_BYTES)
                if data:
                    self._received.write(data)
                else:
                    self._received.write_eof()
            except ssl.SSLError:
                # The alert says why.
                await self._flush()
                raise
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if self._to_send.pending:
            self._writer.write(self._to_send.read())
            await self._writer.drain()
