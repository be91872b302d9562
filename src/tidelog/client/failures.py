"""How a client fails before there is an answer: no connection, no identity, no time left."""

from __future__ import annotations

from tidelog.model.errors import ErrorCode, KafkaError


class NoConnection(Exception):
    """A broker cannot be reached, or the connection ended. Another broker may answer, or this one later.

    ``reason``: the text without the address; ``reached``: something listens there; ``sent``: the request may have arrived, so
    that its outcome is unknown.
    """

    def __init__(self, text: str, *, reason: str | None = None, reached: bool = False, sent: bool = False) -> None:
        super().__init__(text)
        self.reason = reason or text
        self.reached = reached
        self.sent = sent


class NotAuthenticated(Exception):
    """The broker refuses the client's identity, or the client refuses the broker's. Trying again does not help."""


class NoRoute(KafkaError):
    """No node of this cluster can be asked: ``detail`` says which was wanted and what there is."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(code, detail)

    def __str__(self) -> str:
        return self.detail
