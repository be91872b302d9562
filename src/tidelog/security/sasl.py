"""What every SASL mechanism of a server has: bytes in, bytes out, a principal at the end, or one failure with two texts."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidelog.security.principal import KafkaPrincipal

MAX_TOKEN_BYTES = 512 * 1024
"""Kafka's default of ``sasl.server.max.receive.size``, for a mechanism without a limit of its own."""


class AuthenticationFailed(Exception):
    """The client is not who it says. ``str()`` is for the client and names neither users nor secrets; ``reason`` is for the
    log."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


class Authenticated(NamedTuple):
    """The end of an exchange. ``expires_ms`` is when the credential ends, in ms since the epoch; None for never."""

    principal: KafkaPrincipal
    expires_ms: int | None = None
    by_token: bool = False
    """Whether a delegation token was the password (KIP-48); such a client may not ask for tokens."""


class SaslServer(Protocol):
    """One exchange of one mechanism."""

    def answer(self, token: bytes) -> bytes | None:
        """The server's next message; None after a last one of the client to which the mechanism has no answer.
        AuthenticationFailed."""
        ...

    @property
    def outcome(self) -> Authenticated | None:
        """Set when the exchange is complete."""
        ...
