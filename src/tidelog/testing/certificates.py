"""The certificates of one test's broker and of its clients: an authority of its own, which exists in memory only.

Needs the package ``cryptography``, the extra ``tls``; ConfigError says so.
"""

from __future__ import annotations

import os
import ssl
import tempfile

from tidelog.client.net.tls import tls_context
from tidelog.client.settings import Tls
from tidelog.security.authority import Authority, Identity
from tidelog.server.runtime import system_now_ms

HOSTS = ("localhost", "127.0.0.1", "::1")
"""The names that the broker is reached by, all of them in its certificate."""
DAYS = 3650
"""OpenSSL compares with the machine's clock, which ``Broker.advance`` does not move."""


class Certificates:
    """The authority, the broker's certificate, and one for each client that asks by name."""

    def __init__(self, *, mutual: bool) -> None:
        """``mutual``: clients have to show a certificate, too."""
        now_ms = system_now_ms()
        self.mutual = mutual
        self._authority = Authority.made("tidelog.testing", now_ms, DAYS)
        self._broker = self._authority.issue("broker", HOSTS, now_ms, DAYS)
        self._clients: dict[str, Identity] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def authority(self) -> str:
        """What clients trust, in PEM."""
        return self._authority.certificate

    @property
    def authority_file(self) -> str:
        """The path of a file with ``authority``; it is there as long as this object."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="tidelog-", ignore_cleanup_errors=True)
        path = os.path.join(self._folder.name, "authority.pem")
        if not os.path.exists(path):
            with open(path, "w", encoding="ascii") as file:
                file.write(self.authority)
        return path

    def client(self, name: str) -> Identity:
        """The client's certificate, ``CN=name``, and its key; the same each time. ConfigError for a name that no certificate
        can hold."""
        if name not in self._clients:
            self._clients[name] = self._authority.issue(name, (), system_now_ms(), DAYS)
        return self._clients[name]

    def context(self, client: Identity | None) -> ssl.SSLContext:
        """For Python's clients: trusts the broker, and shows the client's certificate."""
        if client is None:
            return tls_context(Tls(ca_text=self.authority))
        return tls_context(Tls(ca_text=self.authority, certificate_text=client.certificate, key_text=client.key))

    def settings(self, protocol: str) -> dict[str, str]:
        """The broker's settings for its one listener, which has the name of its protocol."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": self._broker.key,
            "ssl.keystore.certificate.chain": self._broker.certificate,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority,
            f"listener.name.{protocol.lower()}.ssl.client.auth": "required" if self.mutual else "none",
        }
