"""Failures without a response: no connection, failed authentication, no route."""

from __future__ import annotations

from tidelog.model.errors import ErrorCode, KafkaError


class NoConnection(Exception):
    """A broker cannot be reached, or the connection broke. Another broker may answer, or this one later.

    ``reason``: the text without the address; ``reached``: something listens there; ``sent``: the request may have arrived, so its
    outcome is unknown.
    """

    def __init__(self, text: str, *, reason: str | None = None, reached: bool = False, sent: bool = False) -> None:
        super().__init__(text)
        self.reason = reason or text
        self.reached = reached
        self.sent = sent


def before_the_first_answer(prefix: str, *, tls: bool) -> str:
    """What may be wrong when a connection ends before its first answer. ``prefix``: what users write before setting names."""
    certificate = f", or ask for a client's certificate ({prefix}ssl.keystore.location)" if tls else ""
    return f"before the first answer. It may speak another protocol there ({prefix}security.protocol){certificate}"


class NotAuthenticated(Exception):
    """The broker rejects the client's identity, or the client the broker's. A retry does not help."""


class NoRoute(KafkaError):
    """The cluster has no node for the request: ``detail`` says which was wanted and which there are."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(code, detail)

    def __str__(self) -> str:
        return self.detail
