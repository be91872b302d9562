"""A line without a socket: what the transport would call, called by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import versions
from tidelog.client.net.async_connection import Asked, Line, RawAnswer
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import encode_response_message
from tidelog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tidelog.protocol.messages.fetch import FetchRequest, FetchResponse
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse

SERVED = [ApiVersion(api_key=key, min_version=0, max_version=12) for key in (ApiKey.METADATA, ApiKey.FETCH)]


class Wire:
    """Stands for the transport; the frames in ``sent``."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def abort(self) -> None:
        self.aborted = True


class Talk:
    """A line whose versions are agreed on, and its wire."""

    def __init__(self) -> None:
        self.lost: list[Exception] = []
        self.wire = Wire()
        self.line = Line(ClientConnection("me"), self._on_lost)
        self.line.connection_made(self.wire)  # type: ignore[arg-type]

    def _on_lost(self, line: Line, reason: Exception) -> None:
        self.lost.append(reason)
        line.close(reason)

    def receive(self, data: bytes) -> None:
        room = self.line.get_buffer(-1)
        room[: len(data)] = data
        self.line.buffer_updated(len(data))

    def ask(self, request: Any, *, raw: bool = False) -> asyncio.Future[Any]:
        asked = Asked(request, raw, asyncio.get_running_loop().create_future())
        self.line.send(asked)
        return asked.answer

    async def open(self) -> None:
        opening = asyncio.ensure_future(self.line.converse(versions(self.line.machine), asyncio.get_running_loop()))
        await asyncio.sleep(0)
        self.receive(bytes(encode_response_message(0, ApiKey.API_VERSIONS, 4, ApiVersionsResponse(api_keys=SERVED))))
        await opening


def run(job: Callable[[Talk], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        talk = Talk()
        await talk.open()
        await job(talk)

    asyncio.run(main())


def answer(correlation: int) -> bytes:
    return bytes(encode_response_message(correlation, ApiKey.METADATA, 12, MetadataResponse(cluster_id=str(correlation))))


def test_answers_come_in_the_order_of_the_requests_and_in_pieces() -> None:
    async def job(talk: Talk) -> None:
        first, second = talk.ask(MetadataRequest()), talk.ask(MetadataRequest(), raw=True)
        data = answer(1) + answer(2)
        talk.receive(data[:7])
        talk.receive(data[7:])
        assert (await first).cluster_id == "1"
        found = await second
        assert isinstance(found, RawAnswer)
        assert found.version == 12
        assert MetadataResponse.decode(found.body, 12).cluster_id == "2"

    run(job)


def test_bulk_stays_valid_while_more_is_received() -> None:
    async def job(talk: Talk) -> None:
        asked = [talk.ask(FetchRequest()) for _ in range(2)]
        for correlation in (1, 2):
            talk.receive(bytes(encode_response_message(correlation, ApiKey.FETCH, 12, FetchResponse(session_id=correlation))))
        assert [(await each).session_id for each in asked] == [1, 2]

    run(job)


def test_when_the_connection_ends_every_caller_learns_why() -> None:
    async def job(talk: Talk) -> None:
        waiting = [talk.ask(MetadataRequest()) for _ in range(2)]
        talk.line.connection_lost(None)
        for each in waiting:
            with pytest.raises(ConnectionResetError):
                await each
        with pytest.raises(ConnectionResetError):
            talk.ask(MetadataRequest())
        assert talk.wire.aborted

    run(job)


def test_an_answer_that_cannot_be_read_ends_the_connection() -> None:
    async def job(talk: Talk) -> None:
        waiting = talk.ask(MetadataRequest())
        talk.receive(answer(9))
        with pytest.raises(ProtocolViolation, match="answers request 9, asked was 1"):
            await waiting
        assert len(talk.lost) == 1

    run(job)


def test_a_caller_that_has_gone_keeps_its_place() -> None:
    async def job(talk: Talk) -> None:
        gone, stays = talk.ask(MetadataRequest()), talk.ask(MetadataRequest())
        gone.cancel()
        talk.receive(answer(1) + answer(2))
        assert (await stays).cluster_id == "2"

    run(job)


def test_another_protocol_is_named_before_anything_is_agreed_on() -> None:
    async def main() -> None:
        talk = Talk()
        opening = asyncio.ensure_future(talk.line.converse(versions(talk.line.machine), asyncio.get_running_loop()))
        await asyncio.sleep(0)
        talk.receive(b"HTTP/1.1 400")
        with pytest.raises(ProtocolViolation, match="answers HTTP"):
            await opening

    asyncio.run(main())
