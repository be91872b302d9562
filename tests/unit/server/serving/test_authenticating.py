"""SASL on a listening socket: our own client logs in, and a client that does not is let go."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld
from tests.unit.server.loops import finish, run
from tests.unit.server.serving.listening import listener_on
from tidelog.broker.authentication import LARGEST_FIRST_BYTES, LoginAudit
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import authentication, versions
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Asked, Line
from tidelog.client.settings import Sasl
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.config.resolve import BrokerConfig
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tidelog.security.scram import ScramMechanism, credential_of, salted_password
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving import connection
from tidelog.server.serving.authenticating import sasl_of
from tidelog.server.serving.listener import Limits

SETTINGS = {
    "listeners": "PLAINTEXT://localhost:1,OUTSIDE://localhost:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
    "listener.name.outside.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.outside.plain.sasl.jaas.config": PLAIN_MODULE
    + ' required username="node" password="n0de" user_alice="secret";',
}
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


class Place:
    """A broker's SASL listener, in the loop of a test."""

    def __init__(self, given: Mapping[str, str] | None = None, audit: LoginAudit | None = None, **limits: Any) -> None:
        """``given``: more settings."""
        self.runtime = LoopRuntime(new_event_loop())
        world = NodeWorld()
        mechanism = ScramMechanism.SHA_512
        stored = credential_of(mechanism, salted_password(mechanism, "pencil", SALT, 4096), SALT, 4096)
        world.broker.image = replace(world.broker.image, scram={("carol", mechanism): stored})
        config = BrokerConfig.from_properties({**SETTINGS, **(given or {})})
        sasl = sasl_of("OUTSIDE", world.broker, config, self.runtime, audit)
        self.listener = listener_on(self.runtime, node=world.broker, limits=Limits(**limits), sasl=sasl)
        self.listener.start()

    async def login(self, mechanism: str, user: str, password: str) -> Line:
        line = Line(ClientConnection("me"), Line.close)
        await self.runtime.loop.create_connection(lambda: line, "127.0.0.1", self.listener.port)
        await line.converse(versions(line.machine), self.runtime.loop)
        await line.converse(authentication(line.machine, Sasl(mechanism, user, password), "here", "nonce"), self.runtime.loop)
        return line

    async def served(self, line: Line) -> bool:
        asked = Asked(DescribeClusterRequest(), False, self.runtime.loop.create_future())
        line.send(asked)
        return bool((await asked.answer).error_code == 0)

    def principals(self) -> list[str]:
        return [str(each.machine.session.principal) for each in self.listener.connections]

    def run(self, main: Any) -> None:
        run(self.runtime, main)

    def close(self) -> None:
        finish(self.runtime, self.listener)


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    yield place
    place.close()


@pytest.mark.parametrize(("mechanism", "user", "password"), [("PLAIN", "alice", "secret"), ("SCRAM-SHA-512", "carol", "pencil")])
def test_a_user_logs_in_and_is_served(place: Place, mechanism: str, user: str, password: str) -> None:
    async def main() -> None:
        line = await place.login(mechanism, user, password)
        assert await place.served(line)
        assert place.principals() == [f"User:{user}"]
        line.close(ConnectionAbortedError())

    place.run(main)


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [("PLAIN", "alice", "no"), ("SCRAM-SHA-512", "carol", "no"), ("SCRAM-SHA-256", "carol", "pencil"), ("GSSAPI", "a", "b")],
)
def test_everybody_else_learns_why_not(
    place: Place, mechanism: str, user: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with pytest.raises(NotAuthenticated, match=r"the user name or the password is wrong|does not take GSSAPI"):
            await place.login(mechanism, user, password)

    place.run(main)
    assert "a login from 127.0.0.1 failed" in caplog.text
    assert "pencil" not in caplog.text


def test_quotas_that_begin_do_not_open_the_door(place: Place) -> None:
    """The handler of a connection changes when quotas begin or end; one that has not authenticated keeps the exchange."""

    async def main() -> None:
        line = Line(ClientConnection("me"), Line.close)
        await place.runtime.loop.create_connection(lambda: line, "127.0.0.1", place.listener.port)
        await line.converse(versions(line.machine), place.runtime.loop)
        place.listener.follow_quotas(False, None)
        for each in place.listener.connections:
            each.meter()
        asked = Asked(DescribeClusterRequest(), False, place.runtime.loop.create_future())
        line.send(asked)
        with pytest.raises(OSError, match="closed"):
            await asked.answer

    place.run(main)


def test_a_large_frame_of_a_stranger_closes_the_connection_and_one_of_a_user_does_not(place: Place) -> None:
    async def main() -> None:
        loop = place.runtime.loop
        reader, writer = await asyncio.open_connection("127.0.0.1", place.listener.port)
        writer.write((600_000).to_bytes(4) + b"\0\x12\0\0")
        assert await reader.read() == b""
        writer.close()
        line = await place.login("PLAIN", "alice", "secret")
        (connection_,) = place.listener.connections
        assert connection_.machine.frames._max == Limits().max_request_bytes
        line.close(ConnectionAbortedError())
        assert loop.is_running()

    place.run(main)


@pytest.mark.parametrize(
    ("receive", "limit", "why"),
    [
        (524_288, 2**31 - 1, r"8192 \(before a login"),
        (1000, 2**31 - 1, r"1000 \(sasl\.server\.max\.receive\.size"),
        (524_288, 900, r"900 \(socket\.request\.max\.bytes"),
    ],
)
def test_a_frame_that_is_too_large_names_the_option_that_says_so(
    receive: int, limit: int, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place({"sasl.server.max.receive.size": str(receive)}, max_request_bytes=limit)

    async def main() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.listener.port)
        writer.write((600_000).to_bytes(4) + b"\0\x12\0\0")
        assert await reader.read() == b""
        writer.close()

    with caplog.at_level("INFO"):
        place.run(main)
    place.close()
    assert re.search(rf"a frame of 600000 bytes, allowed are 0 to {why}", caplog.text)


async def shaken(place: Place, mechanism: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that has chosen its mechanism."""
    reader, writer = await asyncio.open_connection("127.0.0.1", place.listener.port)
    writer.write(encode_request(RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 1, "me"), SaslHandshakeRequest(mechanism=mechanism)))
    await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    return reader, writer


@pytest.mark.parametrize(("mechanism", "most"), [("PLAIN", 32 * 1024), ("SCRAM-SHA-512", 16 * 1024)])
def test_a_frame_of_a_login_has_the_limit_of_its_mechanism(
    place: Place, mechanism: str, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        _, writer = await shaken(place, mechanism)
        (stranger,) = place.listener.connections
        frames = stranger.machine.frames
        writer.write(most.to_bytes(4) + bytes(most - 1))
        while frames.pending < most + 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert frames.capacity <= 2 * most
        writer.close()
        reader, writer = await shaken(place, mechanism)
        writer.write((most + 1).to_bytes(4) + b"\0\x24\0\2")
        assert await reader.read() == b""
        writer.close()

    with caplog.at_level("INFO"):
        place.run(main)
    assert f"a frame of {most + 1} bytes, allowed are 0 to {most} (during a login by {mechanism})" in caplog.text


def test_a_stranger_that_sends_requests_in_a_row_gets_no_larger_buffer(place: Place) -> None:
    greeting = ApiVersionsRequest(client_software_name="!", client_software_version="1")  # refused, so it may be repeated
    request = encode_request(RequestHeader(ApiKey.API_VERSIONS, 3, 7, "x" * 4000), greeting)

    async def main() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.listener.port)
        writer.write(request * 9)
        for _ in range(9):
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        (stranger,) = place.listener.connections
        assert stranger.machine.frames.capacity <= LARGEST_FIRST_BYTES
        writer.close()

    place.run(main)


def test_the_oldest_client_that_has_not_logged_in_goes_and_users_stay(place: Place) -> None:
    async def main() -> None:
        place.listener.change_limits(Limits(max_unauthenticated_per_ip=2))
        users = [await place.login("PLAIN", "alice", "secret") for _ in range(4)]
        silent = [await asyncio.open_connection("127.0.0.1", place.listener.port) for _ in range(3)]
        assert await silent[0][0].read() == b""
        users.append(await place.login("SCRAM-SHA-512", "carol", "pencil"))
        assert await silent[1][0].read() == b""
        assert (len(place.listener.newcomers), len(place.listener.connections)) == (1, 6)
        for each in users:
            assert await place.served(each)
            each.close(ConnectionAbortedError())
        for _, writer in silent:
            writer.close()

    place.run(main)


def test_a_client_that_says_nothing_is_let_go(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(connection, "AUTHENTICATE_WITHIN_S", 0.05)

    async def main() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.listener.port)
        assert await reader.read() == b""
        writer.close()
        assert "it did not authenticate within" in caplog.text
        line = await place.login("PLAIN", "alice", "secret")
        (connection_,) = place.listener.connections
        assert connection_._deadline is not None
        assert connection_._deadline.cancelled()
        line.close(ConnectionAbortedError())

    place.run(main)
