from __future__ import annotations

import asyncio
import http.server
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from joserfc.jwk import ECKey

from tests.unit.client.net.token_endpoint import Endpoint
from tests.unit.security.tokens import EC, claims, jwks, signed, unsigned
from tidelog.config.listener_oauth import OAuthSettings
from tidelog.model.errors import ConfigError
from tidelog.security.jwt_signature import UnknownKey
from tidelog.security.oauthbearer import TokenCheck, TokenRefused
from tidelog.server.runtime import BLOCKING_THREADS, LoopRuntime
from tidelog.server.serving import issuer_keys
from tidelog.server.serving.issuer_keys import MAX_DOCUMENT_BYTES, fetch, token_check

SETTINGS = OAuthSettings(
    secured=True,
    url="https://issuer/keys",
    audiences=("tidelog",),
    issuer="https://issuer",
    skew_ms=30_000,
    name_claim="sub",
    scope_claim="scope",
    required_scopes=frozenset(),
    refresh_ms=3_600_000,
    retry_ms=1,
    max_retry_ms=4,
)
NEW = ECKey.generate_key("P-256", {"kid": "new"})


def now() -> dict[str, object]:
    return claims(time.time_ns() // 1_000_000)


def until(runtime: LoopRuntime, what: Callable[[], bool]) -> None:
    async def waiting() -> None:
        while not what():  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    runtime.loop.run_until_complete(asyncio.wait_for(waiting(), 30))


def accepted(check: TokenCheck, token: str) -> bool:
    try:
        check(token)
    except UnknownKey:
        return False
    return True


class Issuer:
    """Serves documents in order, the last one for ever; an exception is a fetch that fails."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.fetched = 0

    def __call__(self, url: str) -> bytes:
        assert url == SETTINGS.url
        self.fetched += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_node_does_not_start_without_the_keys(runtime: LoopRuntime) -> None:
    for answer in (OSError("no route"), ValueError("odd"), b"{}", b"[" * 100_000):
        with pytest.raises(ConfigError, match="https://issuer/keys"):
            token_check(SETTINGS, runtime, Issuer(answer))


def test_an_unknown_key_causes_one_fetch_and_then_its_token_is_accepted(runtime: LoopRuntime) -> None:
    issuer = Issuer(jwks(EC), OSError("for a moment"), b"half", jwks(EC, NEW))
    check = token_check(SETTINGS, runtime, issuer)
    assert check(signed(now())).name == "alice"
    token = signed(now(), NEW)

    async def until_accepted() -> None:
        while True:
            try:
                check(token)
                return
            except UnknownKey:
                await asyncio.sleep(0.001)

    with pytest.raises(UnknownKey):
        check(token)
    runtime.loop.run_until_complete(asyncio.wait_for(until_accepted(), 30))
    assert issuer.fetched == 4
    assert check(signed(now())).name == "alice"


def test_unknown_keys_do_not_cause_a_fetch_each(runtime: LoopRuntime) -> None:
    issuer = Issuer(jwks(EC))
    check = token_check(SETTINGS, runtime, issuer)

    async def ask_often() -> None:
        for _ in range(50):
            with pytest.raises(UnknownKey):
                check(signed(now(), NEW))
            await asyncio.sleep(0.002)

    runtime.loop.run_until_complete(ask_often())
    assert issuer.fetched == 2, "at the start, and once"


def test_keys_are_renewed_at_intervals(runtime: LoopRuntime) -> None:
    issuer = Issuer(jwks(EC), jwks(NEW))
    check = token_check(SETTINGS._replace(refresh_ms=1), runtime, issuer)

    async def until_revoked() -> None:
        while True:
            try:
                check(signed(now()))
            except UnknownKey:
                return
            await asyncio.sleep(0.001)

    runtime.loop.run_until_complete(asyncio.wait_for(until_revoked(), 30))


def test_an_issuer_that_hangs_holds_none_of_the_threads_that_sync_and_read_logs(runtime: LoopRuntime) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(url: str) -> bytes:
        if fetched:
            asked.set()
            release.wait()
        fetched.append(url)
        return jwks(EC)

    fetched: list[str] = []
    token_check(SETTINGS._replace(refresh_ms=1), runtime, hang)
    together = threading.Barrier(BLOCKING_THREADS)

    async def main() -> None:
        while not asked.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await asyncio.gather(*(runtime.run_blocking(lambda: together.wait(10)) for _ in range(BLOCKING_THREADS)))

    try:
        runtime.loop.run_until_complete(asyncio.wait_for(main(), 30))
    finally:
        release.set()


def test_no_fault_of_a_fetch_is_the_last_one(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    deep = b'{"keys": ' + b"[" * 100_000
    issuer = Issuer(jwks(EC), deep, RuntimeError("can't start new thread"), jwks(NEW))
    check = token_check(SETTINGS._replace(refresh_ms=1), runtime, issuer)

    async def until_renewed() -> None:
        while True:
            try:
                check(signed(now(), NEW))
            except UnknownKey:
                await asyncio.sleep(0.001)
            else:
                return

    runtime.loop.run_until_complete(asyncio.wait_for(until_renewed(), 30))
    assert "nested too deeply" in caplog.text and "can't start new thread" in caplog.text


def test_other_tokens_are_refused(runtime: LoopRuntime) -> None:
    check = token_check(SETTINGS, runtime, Issuer(jwks(EC)))
    for token in (unsigned(now()), signed({**now(), "aud": "else"}), "x"):
        with pytest.raises(TokenRefused):
            check(token)


def test_a_listener_for_tests_says_what_it_does(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    check = token_check(SETTINGS._replace(secured=False, issuer=None, audiences=()), runtime)
    assert check(unsigned({**now(), "iat": None})).name == "alice"
    assert "without a signature" in caplog.text


def test_a_document_is_read_from_a_file_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(b"{}")
    assert fetch(path.as_uri()) == b"{}"
    path.write_bytes(b" " * (MAX_DOCUMENT_BYTES + 1))
    with pytest.raises(ValueError, match="more than"):
        fetch(path.as_uri())
    for url in ("http://127.0.0.1:1/", "ftp://127.0.0.1/x", "data:,x"):
        with pytest.raises(OSError, match="unknown url type"):
            fetch(url)


def test_keys_come_over_tls_with_the_authorities_of_the_login_module(
    runtime: LoopRuntime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = Endpoint(tmp_path)
    endpoint.body = jwks(EC)
    url = f"https://localhost:{endpoint.server.server_port}/keys"
    settings = SETTINGS._replace(url=url)
    trusting = settings._replace(
        tls=(("ssl.truststore.location", str(endpoint.authorities)), ("ssl.truststore.type", "PEM")), refresh_ms=1
    )
    try:
        check = token_check(trusting, runtime)
        assert check(signed(now())).name == "alice"
        with pytest.raises(ConfigError, match=rf"cannot be fetched from {url}: .*certificate verify failed"):
            token_check(settings, runtime)

        # The file is read again each time; one that cannot be read leaves the node with the keys that it has.
        text = endpoint.authorities.read_text()
        endpoint.authorities.unlink()
        until(runtime, lambda: f"cannot be fetched from {url}" in caplog.text)
        assert check(signed(now())).name == "alice"
        endpoint.authorities.write_text(text)
        endpoint.body = jwks(NEW)
        until(runtime, lambda: accepted(check, signed(now(), NEW)))
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()


class Redirects(http.server.BaseHTTPRequestHandler):
    """Sends each client to another place."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "file:///etc/hostname")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_redirect_is_not_followed() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Redirects) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        with pytest.raises(OSError, match="302"):
            fetch(f"http://127.0.0.1:{server.server_port}/keys", urllib.request.HTTPHandler())
        thread.join(30)


def test_a_fetch_has_a_deadline() -> None:
    assert issuer_keys.FETCH_S < 60
