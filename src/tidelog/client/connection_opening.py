"""The opening of a connection before the first request: versions (ApiVersions), then SASL (KIP-43, KIP-152), how long it may
take (KIP-601), and when the client logs in again (KIP-368).

An opening is a generator that yields frames to send and receives the response to each; every driver runs the same one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.client.failures import NotAuthenticated
from tidelog.model.errors import ErrorCode, ProtocolViolation

if TYPE_CHECKING:
    from tidelog.client.sasl import Initiator
    from tidelog.client.settings import Sasl

Opening = Generator[bytes, Any, int]
"""Returns how long the session lasts in ms; 0: until the connection ends."""
_SASL_ROUNDS = 4
EARLIEST_SHARE, LATEST_SHARE = 0.85, 0.95
"""Of a session's lifetime, as in Java's clients: connections that opened together do not log in again at the same moment."""
LEAST_BETWEEN_S = 1.1
"""Brokers refuse a second login within a second of the first."""


class SetupTimeout(NamedTuple):
    """socket.connection.setup.timeout.ms and .max.ms (KIP-601): name lookup, connecting and the opening together."""

    first_ms: int = 10_000
    longest_ms: int = 30_000

    def after(self, failures: int, spread: float) -> float:
        """The limit in ms after that many failed attempts in a row: doubled by each, up to the longest.

        ``spread``: a random factor near 1.0, so that nodes do not try again at the same moments.
        """
        if failures <= 0:
            return float(self.first_ms)
        return min(self.first_ms * 2.0 ** min(failures, 30) * spread, float(max(self.first_ms, self.longest_ms)))


class SessionClock:
    """When a connection has to log in again (KIP-368). Times in seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._due_s: float | None = None

    def began(self, lifetime_ms: int, asked_s: float, answered_s: float, spread: float) -> None:
        """A session of ``lifetime_ms`` (0: no end) begins with a login from ``asked_s`` to ``answered_s``. ``spread``: random,
        from 0.0 to 1.0.

        The session counts from the first of the two times, the second in which a broker refuses another login from the last.
        """
        share = EARLIEST_SHARE + (LATEST_SHARE - EARLIEST_SHARE) * spread
        due_s = max(asked_s + lifetime_ms / 1000 * share, answered_s + LEAST_BETWEEN_S)
        self._due_s = due_s if lifetime_ms > 0 else None

    def is_due(self, now_s: float) -> bool:
        """Whether the client logs in again before its next request. A login after the end of the session is in time, too:
        brokers end it at the next request that is none."""
        return self._due_s is not None and now_s >= self._due_s


def versions(machine: ClientConnection) -> Opening:
    """Negotiate versions. ProtocolViolation when the broker answers with an error."""
    again = machine.welcomed((yield machine.hello()))
    if again is not None:
        machine.welcomed((yield again))
    return 0


def authentication(
    machine: ClientConnection,
    sasl: Sasl,
    address: str,
    nonce: str,
    prefix: str = "",
    ticket: Initiator | None = None,
    advice: str = "",
) -> Opening:
    """Authenticate the client, on a new connection or again on one that is open. NotAuthenticated when that fails.

    ``sasl``: for OAUTHBEARER with the token as the password. ``nonce``: see ``ScramConversation``; ``prefix``: what users write
    before setting names; ``ticket``: for GSSAPI; ``advice``: a sentence for a user whom the broker refuses.
    """
    from tidelog.client.sasl import conversation
    from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
    from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest

    without = f"{address} has no SASL there: set {prefix}security.protocol to PLAINTEXT or SSL."
    if machine.session_ms is not None:
        without = (
            f"{address} refuses to renew this login, which holds for {machine.session_ms} ms: brokers take one login a second on "
            "a connection. Let logins hold for seconds: raise connections.max.reauth.ms there, or the life of the credential."
        )
    try:
        shake = yield machine.request(SaslHandshakeRequest(mechanism=sasl.mechanism))
    except UnsupportedByBroker as error:
        raise NotAuthenticated(without) from error
    if shake.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise NotAuthenticated(without)
    if shake.error_code:
        offered = ", ".join(shake.mechanisms) or "none"
        raise NotAuthenticated(
            f"{address} does not take {sasl.mechanism}, but {offered}: set {prefix}sasl.mechanism to one of them."
        )
    talk = conversation(sasl, nonce, ticket)
    message: bytes | None = talk.first()
    for _ in range(_SASL_ROUNDS):
        answer = yield machine.request(SaslAuthenticateRequest(auth_bytes=message or b""))
        if answer.error_code:
            why = answer.error_message or ErrorCode(answer.error_code).name
            who = f"user {sasl.username!r}" if sasl.username else "the token" if ticket is None else "the ticket"
            refusal = f"{address} refuses {who} ({sasl.mechanism}): {why}"
            raise NotAuthenticated(f"{refusal.rstrip('.')}. {advice}" if advice else refusal)
        try:
            message = talk.answer(bytes(answer.auth_bytes))
        except ProtocolViolation as violation:
            raise NotAuthenticated(f"{sasl.mechanism} with {address} failed: {violation}") from violation
        if message is None:
            machine.session_ms = int(answer.session_lifetime_ms)
            return machine.session_ms
    raise NotAuthenticated(f"{sasl.mechanism} with {address} does not come to an end")
