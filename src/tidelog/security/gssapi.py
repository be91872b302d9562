"""SASL GSSAPI (RFC 4752), the server's side: a Kerberos ticket, then an agreement that nothing after the login is wrapped.

The client's tokens go to a context until it is complete. Then the server offers "no security layer" in a wrapped message, and the
client takes it in another one. The cryptography is behind ``GssContext``; this module decides what is asked of it, and when.

A client's last message may end with the name of a user to act as. It has no effect, as in Kafka: the user is always the one that
the ticket names. Libraries write all kinds of names there (kafka-python and aiokafka the broker's).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from tidelog.security.kerberos_names import NoUserName
from tidelog.security.principal import USER, KafkaPrincipal
from tidelog.security.sasl import Authenticated, AuthenticationFailed

REFUSED = "the Kerberos ticket is not accepted"
NO_USER = "the Kerberos principal has no user name on this node"
NO_LAYER = "only logins without a security layer are served"
OFFER = b"\x01\0\0\0"
"""No security layer, and so no largest message."""
MAX_TOKEN_BYTES = 64 * 1024
"""Of one token. A ticket with the groups of an Active Directory has up to 48,000 bytes, by a setting at most 65,535."""
MAX_STEPS = 4
"""Tokens until a context is complete; Kerberos takes one, or two in a form that few clients use."""


class ContextRefused(Exception):
    """The context does not accept a token; the text is the reason, for the log."""


class GssContext(Protocol):
    """One acceptor of RFC 2743. Each method raises ContextRefused."""

    def accept(self, token: bytes) -> bytes:
        """The server's next token; empty where it has none."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the client is known."""
        ...

    def initiator(self) -> str:
        """The client's principal, such as ``ann@EXAMPLE.COM``, when complete."""
        ...

    @property
    def lifetime_s(self) -> int | None:
        """How long the ticket is still valid, in seconds; None for no end."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """The message with a checksum, not encrypted."""
        ...

    def unwrap(self, message: bytes) -> bytes:
        """The content of the client's message, whose checksum is right."""
        ...


class _Stage(Enum):
    CONTEXT = auto()
    PAUSE = auto()
    """The context is complete; the client has its last token and owes an empty one."""
    LAYER = auto()
    """The offer is out."""
    DONE = auto()


class GssapiServer:
    """One exchange."""

    def __init__(self, context: GssContext, user_of: Callable[[str], str], now_ms: Callable[[], int]) -> None:
        """``user_of``: the user name of a principal, or NoUserName; ``now_ms``: since the epoch."""
        self._context = context
        self._user_of = user_of
        self._now_ms = now_ms
        self._stage = _Stage.CONTEXT
        self._steps = 0
        self.outcome: Authenticated | None = None

    def answer(self, token: bytes) -> bytes | None:
        """The next token; None after the client's last one, to which there is no answer. AuthenticationFailed."""
        if len(token) > MAX_TOKEN_BYTES:
            raise AuthenticationFailed(REFUSED, f"GSSAPI: a token of {len(token)} bytes, allowed are {MAX_TOKEN_BYTES}")
        try:
            if self._stage is _Stage.CONTEXT:
                return self._accepted(token)
            if self._stage is _Stage.PAUSE:
                if token:
                    raise AuthenticationFailed(REFUSED, f"GSSAPI: {len(token)} bytes where an empty message was expected")
                return self._offer()
            if self._stage is _Stage.LAYER:
                self._finish(self._context.unwrap(token))
                return None
        except ContextRefused as refused:
            raise AuthenticationFailed(REFUSED, f"GSSAPI: {refused}") from None
        raise AuthenticationFailed(REFUSED, "GSSAPI: a token after the end of the exchange")

    def _accepted(self, token: bytes) -> bytes:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise AuthenticationFailed(REFUSED, f"GSSAPI: no ticket within {MAX_STEPS} tokens")
        answer = self._context.accept(token)
        if not self._context.complete:
            return answer
        if not answer:
            return self._offer()
        self._stage = _Stage.PAUSE
        return answer

    def _offer(self) -> bytes:
        self._stage = _Stage.LAYER
        return self._context.wrap(OFFER)

    def _finish(self, choice: bytes) -> None:
        """Takes the client's choice: the layer, a size that means nothing without one, and perhaps a name."""
        principal = self._context.initiator()
        if len(choice) < len(OFFER) or choice[0] != OFFER[0]:
            raise AuthenticationFailed(NO_LAYER, f"GSSAPI: {principal[:100]!r} asks for a security layer, and none was offered")
        try:
            user = self._user_of(principal)
        except NoUserName as problem:
            raise AuthenticationFailed(NO_USER, f"GSSAPI: {problem}") from None
        left = self._context.lifetime_s
        self.outcome = Authenticated(KafkaPrincipal(USER, user), None if left is None else self._now_ms() + 1000 * left)
        self._stage = _Stage.DONE
