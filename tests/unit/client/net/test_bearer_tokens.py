"""Tokens from files, functions and an endpoint over HTTPS, and endpoints that do wrong."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.net.token_endpoint import Endpoint
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net import bearer_tokens
from tidelog.client.net.bearer_tokens import BearerTokens, fetch
from tidelog.client.oauth import Grant, OAuth


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    made = Endpoint(tmp_path_factory.mktemp("endpoint"))
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def fresh(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.headers, endpoint.asked = 200, {}, []
    endpoint.body = json.dumps({"access_token": "a.b.c", "expires_in": 60}).encode()


def test_an_endpoint_gives_a_token_to_the_client_that_it_knows(endpoint: Endpoint) -> None:
    assert fetch(endpoint.oauth()) == Grant("a.b.c", 60)
    identity = "Basic " + base64.b64encode(b"job:hush").decode()
    assert endpoint.asked == [("/token?x=1", identity, "grant_type=client_credentials&scope=read")]


@pytest.mark.parametrize(
    ("status", "body", "failure", "said"),
    [
        (401, b'{"error":"invalid_client"}', NotAuthenticated, r"gives no token: it answers 401, invalid_client$"),
        (400, b"<html>", NotAuthenticated, r"it answers 400$"),
        (200, b"{}", NotAuthenticated, "the answer holds no access_token"),
        (503, b"", NoConnection, "it answers 503"),
        (200, b"x" * (1024 * 1024 + 1), NoConnection, "more than 1048576 bytes"),
    ],
)
def test_what_an_endpoint_does_wrong_is_said(
    endpoint: Endpoint, status: int, body: bytes, failure: type[Exception], said: str
) -> None:
    endpoint.status, endpoint.body = status, body
    with pytest.raises(failure, match=said) as raised:
        fetch(endpoint.oauth())
    assert "hush" not in str(raised.value)
    assert "x=1" not in str(raised.value)


def test_a_redirect_is_not_followed(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.headers = 302, {"Location": endpoint.oauth().url or ""}
    with pytest.raises(NotAuthenticated, match="it answers 302"):
        fetch(endpoint.oauth())
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_is_not_trusted_sees_no_secret(endpoint: Endpoint) -> None:
    with pytest.raises(NotAuthenticated, match=r"is not trusted: .*https\.ca\.location"):
        fetch(endpoint.oauth(authorities=None))
    other = endpoint.oauth(url=f"https://127.0.0.1:{endpoint.server.server_port}/token")
    with pytest.raises(NotAuthenticated, match="is not trusted"):
        fetch(other)
    assert endpoint.asked == []


def test_an_endpoint_that_is_not_there_is_tried_again_later(endpoint: Endpoint) -> None:
    with pytest.raises(NoConnection, match=r"no token from https://localhost:1/token: ") as raised:
        fetch(endpoint.oauth(url="https://localhost:1/token"))
    assert not raised.value.sent
    with pytest.raises(NoConnection, match=r"missing\.pem|No such file"):
        fetch(endpoint.oauth(authorities="missing.pem"))


def test_an_answer_that_comes_too_slowly_is_given_up(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bearer_tokens, "FETCH_S", 0.0)
    with pytest.raises(NoConnection):
        fetch(endpoint.oauth())


@pytest.mark.parametrize(
    "begin",
    (
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Slow: ", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", id="body to the end"),
    ),
)
def test_an_answer_that_comes_byte_by_byte_is_given_up_as_a_whole(
    endpoint: Endpoint, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time."""
    monkeypatch.setattr(bearer_tokens, "FETCH_S", 1.0)
    over = threading.Event()

    def trickle(listening: socket.socket) -> None:
        taken, _ = listening.accept()
        with contextlib.suppress(OSError), endpoint.context.wrap_socket(taken, server_side=True) as connection:
            connection.sendall(begin)
            while not over.wait(0.02):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=trickle, args=(listening,))
        server.start()
        try:
            with pytest.raises(NoConnection, match=r"no whole answer within 1 s|timed out"):
                fetch(endpoint.oauth(url=f"https://localhost:{listening.getsockname()[1]}/token"))
        finally:
            over.set()
            server.join()


def test_an_endpoint_is_asked_again_when_most_of_a_life_is_over() -> None:
    grants = [Grant("a", 100), Grant(_jwt(exp=280), None), Grant("opaque", None), Grant("last", None)]
    now = [0.0]
    tokens = BearerTokens(OAuth(url="https://x"), lambda _: grants.pop(0), lambda: now[0])
    seen = []
    for now[0] in (0.0, 79.0, 80.0, 239.0, 241.0, 241.0):
        seen.append(tokens.token())
    assert seen == ["a", "a", _jwt(exp=280), _jwt(exp=280), "opaque", "last"]


def _jwt(**claims: int) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def test_a_function_and_a_file_are_asked_each_time(tmp_path: Path) -> None:
    made = iter(["one", "two\n"])
    supplied = BearerTokens(OAuth(supply=lambda: next(made)))
    assert [supplied.token(), supplied.token()] == ["one", "two"]
    file = tmp_path / "token"
    read = BearerTokens(OAuth(file=str(file)))
    for text in ("three", "four"):
        file.write_text(text)
        assert read.token() == text


@pytest.mark.parametrize("made", ["", "a b", None, b"bytes"])
def test_what_is_no_token_is_refused(made: Any, tmp_path: Path) -> None:
    with pytest.raises(NotAuthenticated, match="the function that makes tokens gives no"):
        BearerTokens(OAuth(supply=lambda: made)).token()
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(NotAuthenticated, match="it is not a text"):
        BearerTokens(OAuth(file=str(file))).token()
