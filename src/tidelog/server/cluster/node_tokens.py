"""The token with which a node logs in on a listener of other nodes (OAUTHBEARER): fetched in a thread of its own, and renewed
before it expires.

One fetch runs at a time, whatever the number of connections, and none waits for the next try: after a failed fetch the node uses
the token that it has until that expires, and tries again after ``sasl.login.retry.backoff.ms``, doubled with each failure up to
``sasl.login.retry.backoff.max.ms``, for as long as it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net.bearer_tokens import fetch, file_token
from tidelog.client.net.tls import tls_context
from tidelog.client.oauth import Grant, life_s
from tidelog.model.errors import ConfigError
from tidelog.server.cluster.token_source import Renewal, TokenSource
from tidelog.server.own_thread import in_own_thread
from tidelog.server.runtime import LoopRuntime
from tidelog.server.secret_files import warn_of_readers

log = logging.getLogger(__name__)

LEAST_BETWEEN_S = 10.0
"""Refused logins cause at most one fetch in this time."""
LEAST_USED_S = 1.0
"""A token that holds for less is not replaced earlier: the source is not asked without a pause."""
LEAST_BETWEEN_WARNINGS_S = 60.0

Get = Callable[[TokenSource], Grant]


def get(source: TokenSource) -> Grant:
    """The next token; blocks. NoConnection, NotAuthenticated or ConfigError when there is none."""
    oauth = source.oauth
    if oauth.file is not None:
        return Grant(file_token(oauth.file))
    context = None if source.tls is None else tls_context(source.tls)
    return fetch(oauth, context, source.connect_s, source.read_s)


class NodeTokens:
    """The current token for one listener. Nothing is fetched before the first login asks for one."""

    def __init__(
        self,
        listener: str,
        source: TokenSource,
        runtime: LoopRuntime,
        get: Get = get,
        renewal: Callable[[], Renewal] | None = None,
    ) -> None:
        """ConfigError for TLS settings of the endpoint that cannot be used.

        ``renewal``: when tokens are replaced now, which may change while the node runs. It may raise ConfigError: then, and
        without it, that of ``source`` counts.
        """
        if source.tls is not None:
            tls_context(source.tls)
        if source.oauth.file is not None:
            warn_of_readers(source.oauth.file)
        self._listener = listener
        self._source = source
        self._runtime = runtime
        self._get = get
        self._renewal = renewal
        self._token = ""
        self._ends_s = 0.0
        self._keeping: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        """Set between two fetches."""
        self._refused = asyncio.Event()
        self._problem = ""
        self._warned_s: float | None = None
        self._warned_with_token = False

    async def token(self) -> str:
        """A token that has not expired. ConnectionError when there is none and the last fetch failed.

        Waits for the fetch that is under way, if there is no token; the caller has a limit.
        """
        if self._keeping is None:
            self._keeping = self._runtime.spawn(self._keep(), f"the token for listener {self._listener}")
        if not self._holds():
            await self._tried.wait()
        if not self._holds():
            raise ConnectionError(f"this node has no token to log in with: {self._problem}")
        return self._token

    def refused(self, token: str) -> None:
        """A node does not take this token: fetch another one soon."""
        if token == self._token:
            self._refused.set()

    def _holds(self) -> bool:
        return self._runtime.loop.time() < self._ends_s

    async def _keep(self) -> None:
        """Has a token at all times, as far as the source gives one."""
        loop = self._runtime.loop
        while True:
            used_s = await self._fetched()
            begun_s = loop.time()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._refused.wait(), used_s)
                await asyncio.sleep(max(0.0, begun_s + LEAST_BETWEEN_S - loop.time()))

    async def _fetched(self) -> float:
        """Returns when a fetch has succeeded: for how many seconds its token is used."""
        pause_ms = self._source.retry_ms
        while True:
            self._tried.clear()
            try:
                grant = await in_own_thread(lambda: self._get(self._source), f"token for {self._listener}")
                return self._take(grant)
            except (NoConnection, NotAuthenticated, ConfigError) as error:
                self._failed(str(error))
            except Exception as error:
                # A node without tokens leaves the cluster, so no fault of a fetch may be the last one.
                log.exception("fetching a token for listener %s failed", self._listener)
                self._failed(f"{type(error).__name__}: {error}")
            finally:
                self._tried.set()
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(pause_ms * 2, self._source.max_retry_ms)

    def _take(self, grant: Grant) -> float:
        lives = (grant.life_s, life_s(grant.token, self._runtime.now_ms() / 1000))
        left_s = min((each for each in lives if each is not None), default=None)
        if left_s is None:
            raise NotAuthenticated("the token does not say when it expires: nodes log in with a JWT that has the claim exp")
        if left_s <= 0:
            raise NotAuthenticated("the token has expired already; compare the clock of this node with that of its issuer")
        self._token, self._ends_s = grant.token, self._runtime.loop.time() + left_s
        if self._problem:
            log.info("this node has a token for listener %s again", self._listener)
        self._problem, self._warned_s = "", None
        self._refused.clear()
        return max(self._replaced().after_s(left_s, self._runtime.rng.random()), LEAST_USED_S)

    def _replaced(self) -> Renewal:
        if self._renewal is not None:
            try:
                return self._renewal()
            except ConfigError as problem:
                log.warning("a dynamic setting of tokens for listener %s does not count: %s", self._listener, problem)
        return self._source.renewal

    def _failed(self, problem: str) -> None:
        """Logs a failure when it is a new one, when it is the first without a token, and each minute."""
        now_s, holds = self._runtime.loop.time(), self._holds()
        said = problem == self._problem and holds == self._warned_with_token
        if said and self._warned_s is not None and now_s < self._warned_s + LEAST_BETWEEN_WARNINGS_S:
            return
        self._problem, self._warned_s, self._warned_with_token = problem, now_s, holds
        until = f"the last one holds for {self._ends_s - now_s:.0f} s" if holds else "it cannot log in there"
        log.warning("this node gets no token for listener %s, %s; it keeps trying: %s", self._listener, until, problem)
