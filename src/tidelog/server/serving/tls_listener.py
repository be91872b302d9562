"""What the TLS connections of one listener share: certificate and trust as they are now, names of users, counts, the log."""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING, Final

from tidelog.security.certificates import parse_certificate
from tidelog.security.principal import ANONYMOUS
from tidelog.security.principal_mapping import PrincipalMapper
from tidelog.server.serving.tls_context import server_context
from tidelog.server.serving.tls_replacing import Loaded
from tidelog.server.serving.violations import LogLimit

if TYPE_CHECKING:
    from tidelog.broker.authentication import LoginAudit
    from tidelog.broker.request import Session

log = logging.getLogger(__name__)

TLS: Final = "SSL"
"""The mechanism of a login by certificate, in the audit."""


class TlsListener:
    """Its contents may be replaced while it serves: handshakes that have begun keep the context they began with."""

    def __init__(self, loaded: Loaded) -> None:
        """ConfigError for stores that OpenSSL refuses, or mapping rules that cannot be read."""
        assert loaded.stores.pair is not None, "a listener has a certificate"
        self.name = loaded.settings.listener
        self.context: ssl.SSLContext = server_context(loaded.settings, loaded.stores)
        self.completed = 0
        """Handshakes that ended with a secure connection."""
        self.plain_bytes = 0
        """Connections that began with something else than TLS."""
        self.audit: LoginAudit | None = None
        """Gets the logins by certificate and the failed handshakes."""
        self._mapper = PrincipalMapper(loaded.settings.mapping_rules)
        self._limit = LogLimit()

    @property
    def failures(self) -> int:
        """Handshakes that failed."""
        return self._limit.total

    def take(self, loaded: Loaded) -> None:
        """Uses these stores from the next handshake on. ConfigError as for a new listener; then the old ones stay."""
        self.context = server_context(loaded.settings, loaded.stores)

    def user_of(self, certificate: bytes) -> str:
        """The user name for a client's certificate in DER. NoRuleMatches, DerError."""
        return self._mapper.name(parse_certificate(certificate).subject)

    def entered(self, session: Session) -> None:
        """A client is let in by its certificate, or without one where none is required, which is no login."""
        if self.audit is not None and session.principal != ANONYMOUS:
            self.audit.logged_in(session, TLS, False)

    def failed(self, host: str, reason: str, now_ms: int) -> None:
        """A handshake failed: logs the first few of each second."""
        if self.audit is not None:
            self.audit.login_failed(self.name, host, TLS, reason)
        if untold := self._limit.untold(now_ms):
            log.warning("listener %s: %d more TLS handshakes failed", self.name, untold)
        if self._limit.takes():
            log.warning("listener %s: the TLS handshake of %s failed: %s", self.name, host, reason)
