"""The logins of one client's connections: each with a nonce of its own, and with a token where the mechanism wants one."""

from __future__ import annotations

import secrets
from dataclasses import replace

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening, authentication
from tidelog.client.settings import Sasl

NONCE_BYTES = 24


class Credentials:
    """What a client logs in with, on every connection and every time."""

    def __init__(self, sasl: Sasl, prefix: str = "") -> None:
        """``prefix``: what users write before setting names."""
        self._sasl, self._prefix = sasl, prefix
        self._tokens = None
        if sasl.oauth is not None:
            from tidelog.client.net.bearer_tokens import BearerTokens  # Only for clients with tokens.

            self._tokens = BearerTokens(sasl.oauth)

    @property
    def blocking(self) -> bool:
        """Whether ``login`` may wait for a file, a function or the network."""
        return self._tokens is not None

    def login(self, machine: ClientConnection, address: str) -> Opening:
        """A login, not begun yet. NotAuthenticated or NoConnection when there is no token for it."""
        sasl = self._sasl if self._tokens is None else replace(self._sasl, password=self._tokens.token())
        return authentication(machine, sasl, address, secrets.token_urlsafe(NONCE_BYTES), self._prefix)
