"""What the TLS connections of one listener share: certificate and trust as they are now, names of users, counts, the log."""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING, Final

from tidelog.security.certificates import organizational_units, parse_certificate
from tidelog.security.principal import ANONYMOUS, USER, KafkaPrincipal, group_principals, with_groups
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
        self._groups_from_ou = loaded.settings.groups_from_ou
        self._limit = LogLimit()

    @property
    def failures(self) -> int:
        """Handshakes that failed."""
        return self._limit.total

    def take(self, loaded: Loaded) -> None:
        """Uses these stores from the next handshake on. ConfigError as for a new listener; then the old ones stay."""
        self.context = server_context(loaded.settings, loaded.stores)

    def principal_of(self, certificate: bytes) -> KafkaPrincipal:
        """The user for a client's certificate in DER, with its groups. NoRuleMatches; ValueError for a name or a group that
        cannot be read."""
        user = KafkaPrincipal(USER, self._mapper.name(parse_certificate(certificate).subject))
        if not self._groups_from_ou:
            return user
        return with_groups(user, group_principals(organizational_units(certificate)))

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
