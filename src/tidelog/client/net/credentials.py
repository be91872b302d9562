"""The logins of one client's connections: each with a nonce of its own, and a token or a ticket where the mechanism wants one."""

from __future__ import annotations

import secrets
from dataclasses import replace

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening, authentication
from tidelog.client.settings import Sasl

NONCE_BYTES = 24
TICKET_S = 8.0


class Credentials:
    """What a client logs in with, on every connection and every time."""

    def __init__(self, sasl: Sasl, prefix: str = "", limit_s: float = TICKET_S) -> None:
        """``prefix``: what users write before setting names; ``limit_s``: how long a login waits for a Kerberos ticket.
        ConfigError when the library for tickets is missing."""
        self._sasl, self._prefix, self._limit_s = sasl, prefix, limit_s
        self._advice = ""
        if sasl.oauth is None and sasl.kerberos is None:
            self._advice = f"Check {prefix}sasl.username and {prefix}sasl.password, or {prefix}sasl.jaas.config."
        self._tokens = self._tickets = None
        if sasl.oauth is not None:
            from tidelog.client.net.bearer_tokens import BearerTokens  # Only for clients with tokens.

            self._tokens = BearerTokens(sasl.oauth)
        if sasl.kerberos is not None:
            from tidelog.client.net.tickets import Tickets  # Only for clients with tickets.

            self._tickets = Tickets(sasl.kerberos)

    @property
    def blocking(self) -> bool:
        """Whether ``login`` may wait for a file, a function, a KDC or the network."""
        return self._tokens is not None or self._tickets is not None

    def login(self, machine: ClientConnection, address: str, host: str) -> Opening:
        """A login, not begun yet. NotAuthenticated or NoConnection when there is no token or ticket for it.

        ``host``: the name in ``address``, which is the one in a broker's Kerberos principal.
        """
        sasl = self._sasl if self._tokens is None else replace(self._sasl, password=self._tokens.token())
        ticket = None if self._tickets is None else self._tickets.wait(host, self._limit_s)
        return authentication(machine, sasl, address, secrets.token_urlsafe(NONCE_BYTES), self._prefix, ticket, self._advice)
