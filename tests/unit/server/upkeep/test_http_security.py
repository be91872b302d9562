"""A node's HTTP pages behind TLS and a login, read by Python's own HTTP client; files that change while it runs."""

from __future__ import annotations

import asyncio
import base64
import http.client
import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.unit.server.upkeep.test_monitoring import with_node
from tidelog.model.errors import ConfigError
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal
from tidelog.server.node import Node
from tidelog.server.runtime import new_event_loop
from tidelog.server.upkeep import http_security
from tidelog.server.upkeep.http import Answer, HttpServer, Reader

TOKEN, USER = "scrape-me", "prometheus:s3cret"


class Client:
    """Asks the node with these credentials."""

    def __init__(self, node: Node, context: ssl.SSLContext | None) -> None:
        assert node.monitoring.address is not None
        self._port = node.monitoring.address[1]
        self._context = context

    def _ask(self, path: str, authorization: str | None) -> tuple[int, bytes, dict[str, str]]:
        if self._context is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=20, context=self._context)
        try:
            connection.request("GET", path, headers={} if authorization is None else {"Authorization": authorization})
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.headers)
        finally:
            connection.close()

    async def get(self, path: str, authorization: str | None = None) -> int:
        return (await self.whole(path, authorization))[0]

    async def whole(self, path: str, authorization: str | None = None) -> tuple[int, bytes, dict[str, str]]:
        return await asyncio.to_thread(self._ask, path, authorization)


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def private(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem)


@pytest.fixture
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at with each connection."""
    monkeypatch.setattr(http_security, "LOOK_MS", 0)


def test_pages_need_a_token_or_a_password_but_for_probes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(node: Node) -> None:
        client = Client(node, None)
        for page in ("/metrics", "/healthz", "/nothing"):
            status, body, headers = await client.whole(page)
            assert (status, body) == (401, b"This page needs a login.\n")
            assert "Bearer" in headers["WWW-Authenticate"]
            assert "Basic" in headers["WWW-Authenticate"]
            assert headers["Connection"] == "close"
        for wrong in (f"Bearer {TOKEN}x", basic("prometheus:guess"), f"Basic {TOKEN}"):
            assert await client.get("/metrics", wrong) == 401
        assert await client.get("/metrics", f"Bearer {TOKEN}") == 200
        assert await client.get("/healthz", basic(USER)) == 200
        assert await client.get("/nothing", basic(USER)) == 404
        assert await client.get("/livez") == await client.get("/readyz") == 200

    files = {
        "tidelog.http.bearer.token.file": private(tmp_path / "token", TOKEN + "\n"),
        "tidelog.http.basic.credentials.file": private(tmp_path / "users", USER + "\n"),
    }
    with caplog.at_level(logging.DEBUG):
        with_node(tmp_path, talk, **files)
    assert "GET /metrics of 127.0.0.1 is refused: it has no credential" in caplog.text
    for secret in (TOKEN, "s3cret", "guess"):
        assert secret not in caplog.text


def test_https_with_a_certificate_that_is_renewed_while_the_node_runs(
    tmp_path: Path, look_always: None, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = Authority("old"), Authority("new")
    store = tmp_path / "node.pem"

    async def talk(node: Node) -> None:
        status, body, _ = await Client(node, trusting(old)).whole("/metrics")
        assert status == 200
        assert b"kafka_controller" in body
        with pytest.raises(ssl.SSLCertVerificationError):
            await Client(node, trusting(new)).get("/metrics")
        private(store, "no certificate at all")
        assert await Client(node, trusting(old)).get("/livez") == 200, "the former one stays"
        private(store, new.issue("node", "127.0.0.1").both)
        assert await Client(node, trusting(new)).get("/livez") == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            await Client(node, None).get("/livez")

    private(store, old.issue("node", "127.0.0.1").both)
    with caplog.at_level(logging.INFO):
        with_node(tmp_path, talk, **{"tidelog.http.ssl.keystore.location": str(store)})
    assert "metrics at https://127.0.0.1:" in caplog.text
    assert "the former key and trust stores stay" in caplog.text
    assert "tidelog.http.listener has new key and trust stores" in caplog.text
    assert "the TLS handshake of 127.0.0.1 failed: http request" in caplog.text


def test_clients_can_be_asked_for_a_certificate(tmp_path: Path) -> None:
    authority, stranger = Authority(), Authority("stranger")

    async def talk(node: Node) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            await Client(node, trusting(authority)).get("/livez")
        for signer, welcome in ((authority, True), (stranger, False)):
            context = trusting(authority)
            context.load_cert_chain(private(tmp_path / "client.pem", signer.issue("prometheus").both))
            if welcome:
                assert await Client(node, context).get("/metrics") == 200
            else:
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                    await Client(node, context).get("/metrics")

    settings = {
        "tidelog.http.ssl.keystore.location": private(tmp_path / "node.pem", authority.issue("node", "127.0.0.1").both),
        "tidelog.http.ssl.truststore.location": private(tmp_path / "authority.pem", authority.pem),
        "tidelog.http.ssl.client.auth": "required",
    }
    with_node(tmp_path, talk, **settings)


def test_changed_credentials_are_taken_and_bad_ones_are_not(
    tmp_path: Path, look_always: None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"

    async def talk(node: Node) -> None:
        client = Client(node, None)
        assert await client.get("/metrics", "Bearer first") == 200
        private(path, "first\nsecond")
        assert await client.get("/metrics", "Bearer first") == await client.get("/metrics", "Bearer second") == 200
        private(path, "")
        assert await client.get("/metrics", "Bearer second") == 200
        private(path, "second")
        assert await client.get("/metrics", "Bearer second") == 200
        assert await client.get("/metrics", "Bearer first") == 401

    private(path, "first")
    with caplog.at_level(logging.INFO):
        with_node(tmp_path, talk, **{"tidelog.http.bearer.token.file": str(path)})
    assert caplog.text.count("the former credentials of tidelog.http.listener stay") == 1
    assert caplog.text.count("tidelog.http.listener has new credentials") == 2


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("tidelog.http.bearer.token.file", "missing cannot be read: No such file"),
        ("tidelog.http.basic.credentials.file", "missing cannot be read: No such file"),
        ("tidelog.http.ssl.keystore.location", "listener tidelog.http.listener: .*No such file"),
    ],
)
def test_a_file_that_is_missing_stops_the_start(tmp_path: Path, setting: str, problem: str) -> None:
    async def talk(node: Node) -> None:
        raise AssertionError("it started")

    with pytest.raises(ConfigError, match=problem):
        with_node(tmp_path, talk, **{setting: str(tmp_path / "missing")})


def test_a_token_that_every_user_can_read_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(node: Node) -> None:
        assert await Client(node, None).get("/metrics", f"Bearer {TOKEN}") == 200

    path = tmp_path / "token"
    private(path, TOKEN)
    path.chmod(0o644)
    with_node(tmp_path, talk, **{"tidelog.http.bearer.token.file": str(path)})
    assert f"chmod o-r {path}" in caplog.text


class OneContext:
    """A guard that only encrypts."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self.failed: list[Exception] = []

    async def context(self) -> ssl.SSLContext:
        return self._context

    def admits(self, path: str, authorization: bytes | None, peer: str) -> bool:
        return True

    def principal(self, authorization: bytes | None) -> KafkaPrincipal:
        return ANONYMOUS

    def handshake_failed(self, peer: str, problem: Exception) -> None:
        self.failed.append(problem)


def served(tmp_path: Path) -> tuple[OneContext, Authority]:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(private(tmp_path / "node.pem", authority.issue("node", "127.0.0.1").both))
    return OneContext(context), authority


def run(talk: Callable[[int], Awaitable[None]], guard: OneContext, page: bytes = b"hello\n", *, timeout_s: float = 10.0) -> None:
    """Runs ``talk`` beside a server with one page, on both event loops."""

    async def hello(reader: Reader) -> Answer:
        return Answer(200, page)

    async def main() -> None:
        server = HttpServer({"/page": hello}, timeout_s=timeout_s)
        server.guard = guard
        _, port = await server.start("127.0.0.1", 0)
        try:
            await asyncio.wait_for(talk(port), 30)
        finally:
            await server.close()

    for make_loop in (asyncio.new_event_loop, new_event_loop):
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(main())


def test_a_large_answer_arrives_whole_through_tls(tmp_path: Path) -> None:
    guard, authority = served(tmp_path)
    page = bytes(range(256)) * 8192

    def read(port: int) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trusting(authority))
        for headers in ({}, {"Connection": "close"}):
            connection.request("GET", "/page", headers=headers)
            assert connection.getresponse().read() == page

    async def talk(port: int) -> None:
        await asyncio.to_thread(read, port)

    run(talk, guard, page)
    assert guard.failed == []


def test_a_client_that_does_not_finish_its_handshake_is_not_waited_for(tmp_path: Path) -> None:
    guard, _ = served(tmp_path)

    async def talk(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01")
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()

    run(talk, guard, timeout_s=0.05)
    assert [type(each) for each in guard.failed] == [TimeoutError, TimeoutError]


def test_a_stream_of_a_peer_that_vanishes_ends(tmp_path: Path) -> None:
    guard, _ = served(tmp_path)

    async def talk(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write_eof()
        await reader.read()
        writer.close()

    run(talk, guard)
    assert [isinstance(each, ssl.SSLError) for each in guard.failed] == [True, True]
