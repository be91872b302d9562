"""What the TLS connections of one listener share: certificate and trust as they are now, names of users, counts, the log."""

from __future__ import annotations

import logging
import ssl

from tidelog.config.listener_tls import TlsSettings
from tidelog.security.certificates import Certificate, parse_certificate
from tidelog.security.principal_mapping import PrincipalMapper
from tidelog.server.serving.tls_context import Stores, certificate_of, read_stores, server_context
from tidelog.server.serving.violations import LogLimit

log = logging.getLogger(__name__)


class TlsListener:
    """Its contents may be replaced while it serves: handshakes that have begun keep the context they began with."""

    def __init__(self, settings: TlsSettings, stores: Stores) -> None:
        """ConfigError for stores that OpenSSL refuses, or mapping rules that cannot be read."""
        assert stores.pair is not None, "a listener has a certificate"
        self.settings = settings
        self.stores = stores
        self.context: ssl.SSLContext = server_context(settings, stores)
        self.certificate: Certificate = certificate_of(stores.pair)
        """The listener's own."""
        self.completed = 0
        """Handshakes that ended with a secure connection."""
        self.plain_bytes = 0
        """Connections that began with something else than TLS."""
        self._mapper = PrincipalMapper(settings.mapping_rules)
        self._limit = LogLimit()

    @property
    def failures(self) -> int:
        """Handshakes that failed."""
        return self._limit.total

    def user_of(self, certificate: bytes) -> str:
        """The user name for a client's certificate in DER. NoRuleMatches, DerError."""
        return self._mapper.name(parse_certificate(certificate).subject)

    def failed(self, host: str, reason: str, now_ms: int) -> None:
        """A handshake failed: logs the first few of each second."""
        if untold := self._limit.untold(now_ms):
            log.warning("listener %s: %d more TLS handshakes failed", self.settings.listener, untold)
        if self._limit.takes():
            log.warning("listener %s: the TLS handshake of %s failed: %s", self.settings.listener, host, reason)


def tls_listener(settings: TlsSettings) -> TlsListener:
    """Reads the stores, which blocks. ConfigError."""
    return TlsListener(settings, read_stores(settings))
