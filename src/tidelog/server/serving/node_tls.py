"""All TLS of one node: its listeners, and its connections to those of other nodes."""

from __future__ import annotations

import ssl

from tidelog.config.broker_security import TLS_PROTOCOLS
from tidelog.config.listener_tls import TlsSettings, serving_tls, tls_settings
from tidelog.config.resolve import BrokerConfig
from tidelog.server.serving.tls_context import Stores, client_context, read_stores
from tidelog.server.serving.tls_listener import TlsListener


class TlsClient:
    """How this node speaks TLS to a listener of other nodes. Its contents may be replaced; open connections keep theirs."""

    def __init__(self, settings: TlsSettings, stores: Stores) -> None:
        """ConfigError for stores that OpenSSL refuses."""
        self.settings = settings
        self.context: ssl.SSLContext = client_context(settings, stores)


class NodeTls:
    """Made once for each listener that speaks TLS; reading the stores blocks."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self.listeners: dict[str, TlsListener] = {}
        self.clients: dict[str, TlsClient] = {}

    def listener(self, name: str) -> TlsListener | None:
        """For this node's own listener; None for one in plain text. ConfigError."""
        protocol = self._protocol(name)
        if protocol not in TLS_PROTOCOLS:
            return None
        settings = serving_tls(self._given(), name, protocol)
        found = self.listeners[name] = TlsListener(settings, read_stores(settings))
        return found

    def towards(self, name: str) -> TlsClient | None:
        """For connections to this listener of other nodes; None for plain text. ConfigError."""
        protocol = self._protocol(name)
        if protocol not in TLS_PROTOCOLS:
            return None
        if name not in self.clients:
            settings = tls_settings(self._given(), name, protocol)
            self.clients[name] = TlsClient(settings, read_stores(settings))
        return self.clients[name]

    def _protocol(self, name: str) -> str:
        return self._config.protocol_map.get(name, "PLAINTEXT")

    def _given(self) -> dict[str, str]:
        return {**self._config.static, **self._config.dynamic_broker}
