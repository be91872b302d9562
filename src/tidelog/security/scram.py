"""SASL SCRAM (RFC 5802, 7677), the server's side, and the credentials it stores (KIP-84, KIP-554).

The server stores neither the password nor what a client sends to prove that it knows it: ``stored_key`` verifies a proof and
``server_key`` proves the server to the client. An unknown user gets a salt (``scram_strangers``), and fails at the same message
as a wrong password, so that the exchange does not tell which names exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from enum import IntEnum
from typing import cast

from tidelog.metadata.image import ScramCredential
from tidelog.security.principal import USER, KafkaPrincipal
from tidelog.security.sasl import Authenticated, AuthenticationFailed
from tidelog.security.scram_strangers import LEAST_ITERATIONS, Strangers

MIN_ITERATIONS = LEAST_ITERATIONS
MAX_ITERATIONS = 16384
"""Bounds on what may be stored, as in Kafka."""
MAX_MESSAGE_BYTES = 8192
REFUSED = "the user name or the password is wrong"
_FIRST = rb"n,(?:a=([^,]*))?,((?:m=[^,]*,)?n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)((?:,[A-Za-z]+=[^,]*)*))"
_FINAL = rb"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]+=[^,]*)*),p=([A-Za-z0-9+/=]+)"
"""Compiled by the first login: most nodes have none."""


class ScramMechanism(IntEnum):
    """Kafka's numbers, in requests and in the metadata log."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def digest(self) -> str:
        """The name that ``hashlib`` knows."""
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    @property
    def title(self) -> str:
        """The name on the wire."""
        return "SCRAM-SHA-256" if self is ScramMechanism.SHA_256 else "SCRAM-SHA-512"


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """What clients send when they set a credential (AlterUserScramCredentials). Takes milliseconds of CPU on purpose."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential that is stored for a salted password."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(mechanism.digest, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.digest),
        iterations=iterations,
    )


_NOBODY = (None, None)
Found = tuple[ScramCredential, Authenticated]
Lookup = Callable[[str, bool], Found | None]
"""(name, whether it is the id of a delegation token) -> the credential and whom it authenticates; None for an unknown one."""


def users(credentials: Callable[[str], ScramCredential | None]) -> Lookup:
    """A lookup of users without delegation tokens."""

    def lookup(name: str, token: bool) -> Found | None:
        authenticated = Authenticated(KafkaPrincipal(USER, name))  # for unknown users too, who must not fail sooner
        found = None if token else credentials(name)
        both = cast("Found", (found, authenticated))
        return None if found is None else both

    return lookup


class ScramServer:
    """One exchange. ``nonce``: printable, without commas, never used twice. ``strangers``: the same for all exchanges of a
    mechanism."""

    def __init__(self, mechanism: ScramMechanism, lookup: Lookup, nonce: str, strangers: Strangers) -> None:
        self._mechanism = mechanism
        self._lookup = lookup
        self._nonce = nonce
        self._strangers = strangers
        self._transcript: tuple[bytes, bytes] | None = None
        self._name = ""
        self._by_token = False
        self._found: Found | None = None
        self._shown: tuple[ScramCredential, ScramCredential] | None = None
        self._full_nonce = b""
        self._done = False
        self.outcome: Authenticated | None = None

    def answer(self, token: bytes) -> bytes:
        """The server's next message. AuthenticationFailed."""
        if self._done or len(token) > MAX_MESSAGE_BYTES:
            raise self._failed(f"a message of {len(token)} bytes that does not belong there")
        return self._first(token) if self._transcript is None else self._final(token)

    def _first(self, token: bytes) -> bytes:
        match = re.fullmatch(_FIRST, token)
        if match is None:
            raise self._failed("the first message cannot be read")
        authorization, bare, name, nonce, extensions = match.groups()
        if bare.startswith(b"m="):
            raise self._failed("the client demands an extension")
        self._name = _unescaped(name)
        if authorization and _unescaped(authorization) != self._name:
            raise self._failed("the client asks to act as another user")
        self._by_token = b"tokenauth=true" in (extensions or b"").split(b",")
        found = self._lookup(self._name, self._by_token)
        self._shown = self._strangers.credential(self._name, (found or _NOBODY)[0])
        if self._shown[0].iterations < MIN_ITERATIONS:
            found, self._shown = None, self._strangers.credential(self._name, None)
        self._found, credential = found, self._shown[0]
        self._full_nonce = nonce + self._nonce.encode()
        salt = base64.b64encode(credential.salt)
        first = b"r=%b,s=%b,i=%d" % (self._full_nonce, salt, credential.iterations)
        self._transcript = (bare, first)
        return first

    def _final(self, token: bytes) -> bytes:
        assert self._transcript is not None
        self._done = True
        match = re.fullmatch(_FINAL, token)
        if match is None:
            raise self._failed("the final message cannot be read")
        without_proof, _, nonce, proof_text = match.groups()
        # Equal, not only a common beginning (CVE-2024-56128).
        if not hmac.compare_digest(nonce, self._full_nonce):
            raise self._failed("the nonce is not the one of this exchange; librdkafka before 2.6.1 doubles it")
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except binascii.Error:
            raise self._failed("the proof is not base64") from None
        assert self._shown is not None
        credential = self._shown[0]
        message = b",".join((*self._transcript, without_proof))
        signature = hmac.digest(credential.stored_key, message, self._mechanism.digest)
        # A proof of another length has no client key; the comparison is made all the same.
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        stored_key = hashlib.new(self._mechanism.digest, client_key).digest()
        right = hmac.compare_digest(stored_key, credential.stored_key) and len(proof) == len(signature)
        if not right or self._found is None:
            unknown = "the user has no credential of this mechanism"
            raise self._failed(unknown if self._found is None else "the password is wrong")
        now = self._lookup(self._name, self._by_token)
        if now is None or now[0] != self._found[0]:
            raise self._failed("the credential was changed or removed during the login")
        self.outcome = self._found[1]
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, message, self._mechanism.digest))

    def _failed(self, reason: str) -> AuthenticationFailed:
        self._done = True
        return AuthenticationFailed(REFUSED, f"{self._mechanism.title}, user {self._name[:100]!r}: {reason}")


def _unescaped(name: bytes) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed(REFUSED, "SCRAM: a user name that is not UTF-8") from None
    if re.search("=(?!2C|3D)", text):
        raise AuthenticationFailed(REFUSED, "SCRAM: a user name with an unknown escape")
    return text.replace("=2C", ",").replace("=3D", "=")
