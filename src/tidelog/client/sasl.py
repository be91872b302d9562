"""The client's side of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802, 7677), OAUTHBEARER (RFC 7628) and GSSAPI (RFC 4752), bytes in,
bytes out.

The caller supplies the nonce and carries the bytes in SaslAuthenticate requests. Invariant: SCRAM completes only after the server
has proved that it knows the password too, and GSSAPI after it has proved to be the one that the ticket is for; PLAIN and
OAUTHBEARER have no such proof and are meant for TLS.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Protocol

from tidelog.client.settings import Sasl
from tidelog.model.errors import ProtocolViolation

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 1_000_000
"""Without a limit a hostile server could make a client compute for hours."""
MAX_MESSAGE_BYTES = 8192
MAX_REFUSAL_BYTES = 200
MAX_TICKET_BYTES = 64 * 1024
NO_LAYER = b"\x01\0\0\0"
"""The choice of no security layer, and so of no largest message (RFC 4752, 3.3)."""


class PlainConversation:
    """Sends name and password once."""

    def __init__(self, sasl: Sasl) -> None:
        self._sasl = sasl

    def first(self) -> bytes:
        """The first message."""
        return b"\0" + self._sasl.username.encode() + b"\0" + self._sasl.password.encode()

    def answer(self, server: bytes) -> bytes | None:
        """The next message; None when the exchange is complete."""
        return None


class ScramConversation:
    """Salted challenge and response. ``nonce``: printable, without commas, never used twice."""

    def __init__(self, sasl: Sasl, nonce: str) -> None:
        self._digest = "sha256" if sasl.mechanism == "SCRAM-SHA-256" else "sha512"
        self._password = sasl.password.encode()
        self._nonce = nonce
        name = sasl.username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}" + (",tokenauth=true" if sasl.token else "")
        self._server_signature: bytes | None = None

    def first(self) -> bytes:
        """The first message."""
        return b"n,," + self._first_bare.encode()

    def answer(self, server: bytes) -> bytes | None:
        """The next message; None when the exchange is complete. ProtocolViolation for an invalid server message."""
        if len(server) > MAX_MESSAGE_BYTES:
            raise ProtocolViolation(f"a SCRAM message of {len(server)} bytes, allowed are {MAX_MESSAGE_BYTES}")
        fields = _fields(server)
        if "e" in fields:
            raise ProtocolViolation(f"the broker ends the SCRAM conversation: {fields['e']}")
        if self._server_signature is None:
            return self._prove(server, fields)
        if not hmac.compare_digest(_base64(fields, "v"), self._server_signature):
            raise ProtocolViolation("the broker does not know the password either: its SCRAM signature is wrong")
        return None

    def _prove(self, server: bytes, fields: dict[str, str]) -> bytes:
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ProtocolViolation("the broker's SCRAM nonce does not continue ours")
        iterations = fields.get("i", "")
        if not iterations.isdecimal() or len(iterations) > 7 or not MIN_ITERATIONS <= int(iterations) <= MAX_ITERATIONS:
            raise ProtocolViolation(f"{iterations[:20]!r} SCRAM iterations, allowed are {MIN_ITERATIONS} to {MAX_ITERATIONS}")
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, _base64(fields, "s"), int(iterations))
        client_key = hmac.digest(salted, b"Client Key", self._digest)
        stored_key = hashlib.new(self._digest, client_key).digest()
        last_bare = f"c=biws,r={nonce}"
        message = b",".join((self._first_bare.encode(), server, last_bare.encode()))
        signature = hmac.digest(stored_key, message, self._digest)
        self._server_signature = hmac.digest(hmac.digest(salted, b"Server Key", self._digest), message, self._digest)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        return f"{last_bare},p={proof}".encode()


class BearerConversation:
    """Sends a token once, which is the password of ``sasl``. A broker that refuses it says so in a text, which the client
    acknowledges with one byte; only then does the login fail."""

    def __init__(self, sasl: Sasl) -> None:
        self._token = sasl.password
        self._refusal: str | None = None

    def first(self) -> bytes:
        """The first message."""
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def answer(self, server: bytes) -> bytes | None:
        """The next message; None when the exchange is complete. ProtocolViolation for a login that does not fail after a
        refusal."""
        if self._refusal is not None:
            raise ProtocolViolation(f"the broker refuses the token, and does not end the login: {self._refusal}")
        if not server:
            return None
        self._refusal = server[:MAX_REFUSAL_BYTES].decode(errors="replace")
        return b"\x01"


class Initiator(Protocol):
    """One login by a Kerberos ticket, the client's side of RFC 2743. Its methods raise ProtocolViolation."""

    @property
    def first(self) -> bytes:
        """The first token. It exists before the conversation, because the ticket may come from a KDC."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the broker has proved who it is."""
        ...

    def step(self, token: bytes) -> bytes:
        """The client's next token; empty where it has none."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """The message with a checksum, not encrypted."""
        ...

    def unwrap(self, message: bytes) -> bytes:
        """The content of the broker's message, whose checksum is right."""
        ...


class GssapiConversation:
    """Shows a ticket until the broker has proved who it is, then agrees that nothing after the login is wrapped."""

    def __init__(self, ticket: Initiator) -> None:
        self._ticket = ticket
        self._agreed = False

    def first(self) -> bytes:
        """The first message."""
        return self._ticket.first

    def answer(self, server: bytes) -> bytes | None:
        """The next message; None when the exchange is complete. ProtocolViolation for an invalid server message."""
        if len(server) > MAX_TICKET_BYTES:
            raise ProtocolViolation(f"a GSSAPI message of {len(server)} bytes, allowed are {MAX_TICKET_BYTES}")
        if self._agreed:
            return None
        if not self._ticket.complete:
            return self._ticket.step(server)
        offer = self._ticket.unwrap(server)
        if len(offer) != len(NO_LAYER) or not offer[0] & NO_LAYER[0]:
            raise ProtocolViolation("the broker wants messages to be wrapped after the login, which Kafka has no form for")
        self._agreed = True
        return self._ticket.wrap(NO_LAYER)


Conversation = PlainConversation | ScramConversation | BearerConversation | GssapiConversation


def conversation(sasl: Sasl, nonce: str, ticket: Initiator | None = None) -> Conversation:
    """The conversation for the mechanism. ``ticket``: for GSSAPI."""
    if ticket is not None:
        return GssapiConversation(ticket)
    if sasl.mechanism == "OAUTHBEARER":
        return BearerConversation(sasl)
    return PlainConversation(sasl) if sasl.mechanism == "PLAIN" else ScramConversation(sasl, nonce)


def _fields(message: bytes) -> dict[str, str]:
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation("a SCRAM message that is not UTF-8") from None
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _base64(fields: dict[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(fields.get(name, ""), validate=True)
    except binascii.Error:
        raise ProtocolViolation(f"the SCRAM field {name!r} is not base64") from None
