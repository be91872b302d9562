"""Guards a node's HTTP pages: the certificate of the listener, and the tokens and passwords that clients present.

Files are looked at again when a client connects, at most every five seconds: renewed ones need no restart. A file that cannot be
used is named in the log, and what was read before stays in force.
"""

from __future__ import annotations

import logging
import os
import ssl
from functools import partial
from typing import NamedTuple

from tidelog.config.http_endpoint import LISTENER, HttpEndpointSecurity
from tidelog.model.errors import ConfigError
from tidelog.security.http_login import HttpLogin, tokens_of, user_of, users_of
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal
from tidelog.server.runtime import LoopRuntime
from tidelog.server.secret_files import warn_of_readers
from tidelog.server.serving.node_tls import Slot, warn_of_end
from tidelog.server.serving.tls_listener import TlsListener
from tidelog.server.serving.tls_replacing import Loaded, Signature, load, signature
from tidelog.server.serving.violations import LogLimit

log = logging.getLogger(__name__)

LOOK_MS = 5_000
LARGEST_FILE_BYTES = 1 << 20
WITHOUT_LOGIN = frozenset({"/livez", "/readyz"})
"""For the probes of a supervisor: they say whether the node is up, and nothing else."""


class _Login(NamedTuple):
    accepted: HttpLogin
    seen: Signature


class HttpSecurity:
    """Made before the server listens; its first look at the files blocks."""

    def __init__(self, settings: HttpEndpointSecurity, runtime: LoopRuntime) -> None:
        """ConfigError for a file that cannot be used."""
        self._settings = settings
        self._runtime = runtime
        self._looked_ms = runtime.even_ms()
        self._looking = False
        self._refusals = LogLimit()
        self._slot: Slot | None = None
        if settings.tls is not None:
            self._slot = Slot(*load(settings.tls))
            self._slot.listener = TlsListener(self._slot.loaded)
        self._login = self._read_login()

    @property
    def speaks_tls(self) -> bool:
        return self._slot is not None

    async def context(self) -> ssl.SSLContext | None:
        """For a new connection, with the files as they are now; None for plain text."""
        now_ms = self._runtime.even_ms()
        if now_ms - self._looked_ms >= LOOK_MS and not self._looking:
            self._looked_ms, self._looking = now_ms, True
            try:
                await self._look()
            finally:
                self._looking = False
        listener = None if self._slot is None else self._slot.listener
        return None if listener is None else listener.context

    def admits(self, path: str, authorization: bytes | None, peer: str) -> bool:
        """Whether a client may read a page."""
        if self._login is None or path in WITHOUT_LOGIN or self._login.accepted.accepts(authorization):
            return True
        if untold := self._refusals.untold(self._runtime.now_ms()):
            log.warning("%d more requests for metrics had no accepted credential", untold)
        if self._refusals.takes():
            what = "no credential" if authorization is None else "a credential that is not accepted"
            log.warning("GET %s of %s is refused: it has %s", path, peer, what)
        return False

    def principal(self, authorization: bytes | None) -> KafkaPrincipal:
        """A user with a password counts as ``User:NAME``, a token as what the settings say, any other client as anonymous."""
        if self._login is None or not self._login.accepted.accepts(authorization):
            return ANONYMOUS
        user = user_of(authorization)
        return KafkaPrincipal(*self._settings.token_principal) if user is None else KafkaPrincipal("User", user)

    def handshake_failed(self, peer: str, problem: Exception) -> None:
        """Logs it, the first few of each second."""
        if self._slot is not None and self._slot.listener is not None:
            reason = getattr(problem, "reason", None) or str(problem) or "it took too long"
            self._slot.listener.failed(peer, str(reason).replace("_", " ").lower(), self._runtime.now_ms())

    # -- files ------------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Takes files that have changed."""
        self._login = await self._runtime.run_blocking(self._new_login)
        slot = self._slot
        if slot is None:
            return
        if (found := await self._runtime.run_blocking(partial(_new_stores, slot))) is not None:
            slot.take(*found)
            log.info("%s has new key and trust stores", LISTENER)
        warn_of_end(LISTENER, slot, self._runtime.now_ms())

    def _new_login(self) -> _Login | None:
        """The credentials as they are now, or those that were read before when the files cannot be used. Blocks."""
        login = self._login
        if login is None or (seen := self._signature()) == login.seen:
            return login
        try:
            new = self._read_login()
        except ConfigError as problem:
            log.error("the former credentials of %s stay: %s", LISTENER, problem)
            return login._replace(seen=seen)
        log.info("%s has new credentials", LISTENER)
        return new

    def _read_login(self) -> _Login | None:
        """The credentials in the files; None when no login is asked for. ConfigError. Blocks."""
        tokens, users = self._settings.token_file, self._settings.user_file
        if tokens is None and users is None:
            return None
        seen = self._signature()
        return _Login(
            HttpLogin(
                [] if tokens is None else tokens_of(_text(tokens), tokens),
                [] if users is None else users_of(_text(users), users),
            ),
            seen,
        )

    def _signature(self) -> Signature:
        found = []
        for path in (self._settings.token_file, self._settings.user_file):
            if path is not None:
                try:
                    stat = os.stat(path)
                    found.append((path, stat.st_ino, stat.st_mtime_ns, stat.st_size))
                except OSError:
                    found.append((path, 0, 0, 0))
        return tuple(found)


def _new_stores(slot: Slot) -> tuple[Loaded, Signature] | None:
    """The stores when their files have changed and can be used. Blocks."""
    if signature(slot.loaded.settings) == slot.seen:
        return None
    try:
        loaded, slot.seen = load(slot.loaded.settings)
        # OpenSSL refuses some of what can be read.
        TlsListener(loaded)
    except ConfigError as problem:
        slot.seen = signature(slot.loaded.settings)
        log.error("the former key and trust stores stay: %s", problem)
        return None
    return loaded, slot.seen


def _text(path: str) -> str:
    """ConfigError for a file that cannot be read."""
    warn_of_readers(path)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"{path} cannot be read: {reason}.") from None
    if len(text) > LARGEST_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {LARGEST_FILE_BYTES} bytes.")
    return text
