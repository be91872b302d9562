"""A line without a socket: what the transport would call, called by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import versions
from tidelog.client.net.async_connection import Asked, Line, Over, RawAnswer
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


def fetched(correlation: int, session_id: int) -> bytes:
    return bytes(encode_response_message(correlation, ApiKey.FETCH, 12, FetchResponse(session_id=session_id)))


class Reading:
    """A caller that reads answers itself; ``left``: how many requests it still sends."""

    def __init__(self, talk: Talk, left: int, *, declines: bool = False) -> None:
        self.talk, self.left, self.declines = talk, left, declines
        self.seen: list[tuple[int, int]] = []
        self.asked = Asked(FetchRequest(), False, asyncio.get_running_loop().create_future(), on_frame=self.on_frame)
        self.asked.timeout_ms = 30_000
        talk.line.send(self.asked)

    def on_frame(self, line: Line, frame: memoryview) -> bytes | Over | None:
        connection = line.machine
        assert int.from_bytes(frame[:4], "big") == connection.oldest()[0]
        self.seen.append(connection.oldest())
        if self.declines:
            return None
        connection.taken()
        if not self.left:
            return Over("over")
        self.left -= 1
        connection.sent(ApiKey.FETCH, 12)
        return b"request %d" % (connection.next_correlation_id - 1)


def test_a_caller_that_reads_its_answers_itself_sends_one_request_after_another() -> None:
    async def job(talk: Talk) -> None:
        reading = Reading(talk, 2)
        for correlation in (1, 2, 3):
            assert not reading.asked.answer.done()
            talk.receive(fetched(correlation, 7))
        assert reading.seen == [(1, 12), (2, 12), (3, 12)]
        assert talk.wire.sent[-2:] == [b"request 2", b"request 3"]
        assert await reading.asked.answer == "over"
        assert reading.asked.due_s > asyncio.get_running_loop().time()
        other = talk.ask(MetadataRequest())
        talk.receive(answer(4))
        assert (await other).cluster_id == "4"

    run(job)


def test_what_such_a_caller_leaves_is_decoded() -> None:
    async def job(talk: Talk) -> None:
        reading = Reading(talk, 0, declines=True)
        talk.receive(fetched(1, 7))
        assert (await reading.asked.answer).session_id == 7

    run(job)


@pytest.mark.parametrize("case", ["given up", "not alone"])
def test_such_a_caller_sees_no_answer_that_is_given_up_or_has_others_behind_it(case: str) -> None:
    async def job(talk: Talk) -> None:
        reading = Reading(talk, 1)
        if case == "given up":
            reading.asked.answer.cancel()
        else:
            talk.ask(MetadataRequest())
        talk.receive(fetched(1, 7))
        assert not reading.seen and reading.asked.answer.done() and not talk.lost

    run(job)


def test_answers_behind_a_large_one_are_read_from_the_next_buffer() -> None:
    async def job(talk: Talk) -> None:
        asked = [talk.ask(FetchRequest(), raw=True), talk.ask(MetadataRequest())]
        large = fetched(1, 7)
        padded = (len(large) + 20_000 - 4).to_bytes(4, "big") + large[4:] + bytes(20_000)
        data = padded + answer(2)
        while data:
            count = min(len(data), len(talk.line.get_buffer(-1)))
            talk.receive(data[:count])
            data = data[count:]
        assert (await asked[1]).cluster_id == "2" and len((await asked[0]).body) > 20_000

    run(job)
