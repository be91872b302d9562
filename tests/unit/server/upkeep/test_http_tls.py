"""TLS over asyncio's streams, step by step and without sockets."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tidelog.server.upkeep.http_tls import TlsStream


class Written:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self.data = b""
        self.ended = False

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        pass

    def write_eof(self) -> None:
        self.ended = True

    def taken(self) -> bytes:
        data, self.data = self.data, b""
        return data


async def shaken(tmp_path: Path) -> tuple[TlsStream, asyncio.StreamReader, Written, Any, ssl.MemoryBIO, ssl.MemoryBIO]:
    """A secure connection: the node's side, and the client's with its two buffers."""
    authority = Authority()
    (tmp_path / "node.pem").write_text(authority.issue("node", "localhost").both)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "node.pem")
    reader, writer = asyncio.StreamReader(), Written()
    stream = TlsStream(context, reader, writer)  # type: ignore[arg-type]
    to_client, to_node = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cadata=authority.pem).wrap_bio(to_client, to_node, server_hostname="localhost")
    shaking = asyncio.ensure_future(stream.handshake())
    done = False
    while not (done and shaking.done()):
        if not done:
            try:
                client.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
        reader.feed_data(to_node.read())
        await asyncio.sleep(0)
        to_client.write(writer.taken())
    await shaking
    return stream, reader, writer, client, to_client, to_node


def test_both_sides_read_what_the_other_wrote_and_learn_of_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        stream, reader, writer, client, to_client, to_node = await shaken(tmp_path)
        client.write(b"hello")
        reader.feed_data(to_node.read())
        assert await stream.read(100) == b"hello"
        stream.write(b"world")
        to_client.write(writer.taken())
        assert client.read(100) == b"world"
        stream.write_eof()
        assert writer.ended
        to_client.write(writer.taken())
        assert client.read(1) == b""

    asyncio.run(main())


@pytest.mark.parametrize("politely", [True, False])
def test_a_client_that_ends_is_read_as_an_end(tmp_path: Path, politely: bool) -> None:
    async def main() -> None:
        stream, reader, _, client, _, to_node = await shaken(tmp_path)
        if politely:
            with pytest.raises(ssl.SSLWantReadError):
                client.unwrap()
            reader.feed_data(to_node.read())
        reader.feed_eof()
        assert await stream.read(100) == b""

    asyncio.run(main())
