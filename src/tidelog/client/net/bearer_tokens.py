"""Tokens for OAUTHBEARER, fetched with blocking I/O: from a function, a file or an identity provider over HTTPS.

An endpoint is asked again once most of a token's life is over; a file and a function are asked at each login. Waits and sizes are
bounded, and redirects are not followed: the configured address is the only one that sees the client's secret.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.oauth import MAX_TOKEN_CHARACTERS, Grant, NoToken, OAuth, checked, grant_request, granted, life_s, refusal

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPResponse, HTTPSConnection

FETCH_S = 10.0
MAX_DOCUMENT_BYTES = 1024 * 1024
KEPT_SHARE = 0.8
"""Of a token's life: after that the endpoint is asked again. The rest is for the session that begins with it."""
_SERVER_ERRORS = 500

Fetch = Callable[[OAuth], Grant]


def fetch(
    oauth: OAuth, context: ssl.SSLContext | None = None, connect_s: float | None = None, read_s: float | None = None
) -> Grant:
    """A token of the endpoint. NoConnection when it cannot be reached or fails, NotAuthenticated when it refuses the client.

    ``context``: for TLS with the endpoint; None: one that trusts ``oauth.authorities``. ``connect_s``, ``read_s``: limits of the
    connection and of each wait for the answer. All of it takes ``FETCH_S`` at most, or the sum of the two where one is given.
    """
    import http.client
    import ssl

    assert oauth.url is not None
    parts = urlsplit(oauth.url)
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    connect_limit_s, read_limit_s = connect_s or FETCH_S, read_s or FETCH_S
    whole_s = FETCH_S if connect_s is None and read_s is None else connect_limit_s + read_limit_s
    try:
        context = context or ssl.create_default_context(cafile=oauth.authorities)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, timeout=connect_limit_s, context=context
        )
        status, document = _answer(connection, oauth, read_limit_s, whole_s)
    except ssl.SSLCertVerificationError as error:
        raise NotAuthenticated(
            f"the certificate of {where} is not trusted: {error.verify_message} (https.ca.location)"
        ) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _unreachable(where, str(error) or type(error).__name__) from error
    if status >= _SERVER_ERRORS:
        raise _unreachable(where, f"it answers {status}")
    if status != 200:
        said = refusal(document)
        raise NotAuthenticated(f"{where} gives no token: it answers {status}{said and ', '}{said}")
    try:
        return granted(document)
    except NoToken as error:
        raise NotAuthenticated(f"{where} gives no token: {error}") from error


def _unreachable(where: str, reason: str) -> NoConnection:
    return NoConnection(f"no token from {where}: {reason}", reason=f"no token from {where}: {reason}")


def _answer(connection: HTTPSConnection, oauth: OAuth, read_s: float, whole_s: float) -> tuple[int, bytes]:
    """The status and the document of the endpoint's answer. OSError, ValueError or HTTPException without a whole one."""
    import http.client

    parts = urlsplit(oauth.url or "")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers, body = grant_request(oauth)
    watch = _Watch(whole_s)
    try:
        connection.connect()
        watch.opened(connection.sock)
        watch.check()
        connection.sock.settimeout(read_s)
        connection.request("POST", target, body, headers)
        answer = connection.getresponse()
        document = _read(answer, watch)
    except (OSError, http.client.HTTPException):
        watch.check()
        raise
    finally:
        watch.end()
        connection.close()
    watch.check()
    return answer.status, document


class _Watch:
    """Ends a request that takes too long as a whole, however often a few bytes of the answer come."""

    def __init__(self, limit_s: float) -> None:
        self._over = False
        self._limit_s = limit_s
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(limit_s, self._give_up)
        self._timer.daemon = True
        self._timer.start()

    def _give_up(self) -> None:
        self._over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # Of the socket below TLS: the thread that waits for the answer uses the TLS object.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def opened(self, connection: socket.socket) -> None:
        """From here on the connection is ended in time. The client of HTTP forgets it when the answer ends with it."""
        self._socket = connection

    def end(self) -> None:
        self._timer.cancel()

    def check(self) -> None:
        """TimeoutError when the request took too long."""
        if self._over:
            raise TimeoutError(f"no whole answer within {self._limit_s:g} s")


def _read(answer: HTTPResponse, watch: _Watch) -> bytes:
    """The body. ValueError for one that is too large, TimeoutError for one that comes too slowly."""
    document = b""
    while part := answer.read1(65536):
        watch.check()
        document += part
        if len(document) > MAX_DOCUMENT_BYTES:
            raise ValueError(f"the answer has more than {MAX_DOCUMENT_BYTES} bytes")
    return document


def file_token(path: str) -> str:
    """The token in a file. NotAuthenticated when it cannot be read or is none."""
    return _checked(_content(path), path)


def _checked(text: object, where: str) -> str:
    if not isinstance(text, str):
        raise NotAuthenticated(f"{where} gives no text")
    try:
        return checked(text)
    except NoToken as error:
        raise NotAuthenticated(f"{where} gives no token: {error}") from error


class BearerTokens:
    """The current token of one client; may be used from several threads."""

    def __init__(self, oauth: OAuth, get: Fetch = fetch, now: Callable[[], float] = time.time) -> None:  # noqa: TID251
        """``now``: seconds since 1970."""
        self._oauth = oauth
        self._get, self._now = get, now
        self._lock = threading.Lock()
        self._token, self._kept_until = "", 0.0

    def token(self) -> str:
        """A token to log in with. NotAuthenticated or NoConnection when there is none."""
        if self._oauth.supply is not None:
            return _checked(self._oauth.supply(), "the function that makes tokens")
        if self._oauth.file is not None:
            return file_token(self._oauth.file)
        with self._lock:
            if self._now() >= self._kept_until:
                grant = self._get(self._oauth)
                now = self._now()
                life = grant.life_s if grant.life_s is not None else life_s(grant.token, now)
                self._token, self._kept_until = grant.token, now + KEPT_SHARE * (life or 0)
            return self._token


def _content(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read(MAX_TOKEN_CHARACTERS + 2)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise NotAuthenticated(f"the token in {path} cannot be read: {reason}") from error
