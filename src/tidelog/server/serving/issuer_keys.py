"""The keys of a token issuer on a node: fetched before the first login, then at intervals and when a token names an unknown key.

The document comes from a file or over HTTPS, in a thread of its own, with a limit on time and size. The ``ssl.*`` options of the
login module say which authorities count, as in Kafka. Redirects are not followed, so the configured address is the only one that
is ever asked (CVE-2025-27817). After a failed fetch the node keeps its keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Final

from tidelog.client.net.tls import tls_context
from tidelog.client.settings import parse_tls
from tidelog.config.listener_oauth import OAuthSettings
from tidelog.model.errors import ConfigError
from tidelog.security.jwt_claims import ClaimRules, bearer_of
from tidelog.security.jwt_signature import IssuerKeys, UnknownKey, unsecured_claims
from tidelog.security.oauthbearer import Bearer, TokenCheck
from tidelog.server.own_thread import in_own_thread
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

FETCH_S: Final = 10.0
MAX_DOCUMENT_BYTES: Final = 1024 * 1024
LEAST_BETWEEN_MS: Final = 10_000
"""Unknown keys cause at most one fetch in this time: every client can send a token that names one."""

Fetch = Callable[[str], bytes]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_FAILURES: Final = (OSError, ValueError, http.client.HTTPException, ConfigError)


def fetch(url: str, over: urllib.request.BaseHandler | None = None) -> bytes:
    """The document at an ``https:`` or ``file:`` URL. OSError, ValueError or HTTPException when it cannot be had.

    ``over``: what carries the request; None: HTTPS that trusts the system's authorities.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        over or urllib.request.HTTPSHandler(),
        urllib.request.FileHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        _NoRedirects(),
    ):
        opener.add_handler(handler)
    with opener.open(url, timeout=FETCH_S) as answer:
        document: bytes = answer.read(MAX_DOCUMENT_BYTES + 1)
    if len(document) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it has more than {MAX_DOCUMENT_BYTES} bytes")
    return document


def fetch_with(settings: OAuthSettings) -> Fetch:
    """A fetch with the listener's TLS settings, whose files are read each time. ConfigError for settings that do not exist."""
    if not settings.tls or settings.url.lower().startswith("file:"):
        return fetch
    tls = parse_tls(dict(settings.tls))
    return lambda url: fetch(url, urllib.request.HTTPSHandler(context=tls_context(tls)))


class KeyFeed:
    """The current keys of one issuer."""

    def __init__(self, settings: OAuthSettings, runtime: LoopRuntime, get: Fetch) -> None:
        """Fetches the keys. ConfigError when that fails: the node does not start without them."""
        self._settings = settings
        self._runtime = runtime
        self._get = get
        self._wanted = asyncio.Event()
        self._next_ms = 0
        try:
            self._keys = IssuerKeys(get(settings.url))
        except _FAILURES as error:
            raise ConfigError(f"The keys of the token issuer cannot be fetched from {settings.url}: {error}.") from error

    def start(self) -> None:
        """Renews the keys from now on."""
        self._runtime.spawn(self._renew(), "keys of the token issuer")

    @property
    def keys(self) -> IssuerKeys:
        """The keys of the last fetch that succeeded."""
        return self._keys

    def want(self) -> None:
        """A token names a key that is not there: fetch soon."""
        if self._runtime.real_ms() >= self._next_ms:
            self._wanted.set()

    async def _renew(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._settings.refresh_ms / 1000)
            await self._fetched()
            self._wanted.clear()
            self._next_ms = self._runtime.real_ms() + LEAST_BETWEEN_MS

    async def _fetched(self) -> None:
        """Returns when a fetch has succeeded."""
        pause_ms = self._settings.retry_ms
        while True:
            try:
                self._keys = IssuerKeys(await in_own_thread(lambda: self._get(self._settings.url), "keys of the token issuer"))
                return
            except _FAILURES as error:
                log.warning("the keys of the token issuer cannot be fetched from %s: %s", self._settings.url, error)
            except Exception:
                # Keys that are never renewed lock clients out, so no fault of a fetch may be the last one.
                log.exception("fetching the keys of the token issuer from %s failed", self._settings.url)
            await self._runtime.sleep(pause_ms / 1000)
            pause_ms = min(max(1, pause_ms * 2), max(1, self._settings.max_retry_ms))


def token_check(settings: OAuthSettings, runtime: LoopRuntime, get: Fetch | None = None) -> TokenCheck:
    """The check of a listener's tokens. ConfigError as for ``KeyFeed`` and ``fetch_with``."""
    rules = ClaimRules(
        audiences=settings.audiences,
        issuer=settings.issuer,
        skew_ms=settings.skew_ms,
        name_claim=settings.name_claim,
        scope_claim=settings.scope_claim,
        required_scopes=settings.required_scopes,
        wants_issue_time=settings.secured,
        groups_claim=settings.groups_claim,
    )
    if not settings.secured:
        log.warning("OAUTHBEARER accepts tokens without a signature: every client can be any user")
        return lambda token: bearer_of(unsecured_claims(token), rules, runtime.now_ms())
    feed = KeyFeed(settings, runtime, get or fetch_with(settings))
    feed.start()

    def check(token: str) -> Bearer:
        try:
            claims = feed.keys.claims(token)
        except UnknownKey:
            feed.want()
            raise
        return bearer_of(claims, rules, runtime.now_ms())

    return check
