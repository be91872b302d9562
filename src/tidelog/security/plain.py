"""SASL PLAIN (RFC 4616), the server's side: one message with a name and a password."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from tidelog.security.principal import USER, KafkaPrincipal
from tidelog.security.sasl import Authenticated, AuthenticationFailed

REFUSED = "the user name or the password is wrong"
MAX_FIELD_BYTES = 8192
MAX_MESSAGE_BYTES = 3 * MAX_FIELD_BYTES

PasswordCheck = Callable[[str, str], bool]
"""(user, password) -> whether they belong together. It takes the same time for an unknown user."""


class PlainServer:
    """One exchange."""

    def __init__(self, check: PasswordCheck) -> None:
        self._check = check
        self.outcome: Authenticated | None = None

    def answer(self, token: bytes) -> bytes:
        """Empty: PLAIN has no message of the server. AuthenticationFailed; a client cannot act as another user."""
        if len(token) > MAX_MESSAGE_BYTES:
            # Not split: half a megabyte of NULs would be as many fields.
            raise AuthenticationFailed(REFUSED, f"a PLAIN message of {len(token)} bytes, allowed are {MAX_MESSAGE_BYTES}")
        parts = token.split(b"\0")
        if len(parts) != 3:
            raise AuthenticationFailed(REFUSED, f"a PLAIN message with {len(parts)} fields, expected are 3")
        try:
            authorization, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise AuthenticationFailed(REFUSED, "a PLAIN message that is not UTF-8") from None
        if not user or not password:
            raise AuthenticationFailed(REFUSED, f"PLAIN without a {'password' if user else 'user name'}")
        if authorization not in ("", user):
            raise AuthenticationFailed(REFUSED, f"{user[:100]!r} asks to act as {authorization[:100]!r}")
        if not self._check(user, password):
            raise AuthenticationFailed(REFUSED, f"PLAIN: an unknown user or a wrong password, user {user[:100]!r}")
        self.outcome = Authenticated(KafkaPrincipal(USER, user))
        return b""


def fixed_users(users: dict[str, str]) -> PasswordCheck:
    """A check against names and passwords of the configuration.

    Digests are compared, so that the time depends neither on the length of the right password nor on whether the user exists. An
    unknown user is compared with some user's digest, and refused: each check has one lookup that finds and one that does not,
    because memory that was not read lately takes longer.
    """
    digests = {user: _digest(password) for user, password in users.items()}
    names = ["".join(list(user)) for user in digests] or [""]
    no_password = bytes(hashlib.sha256().digest_size)

    def check(user: str, password: str) -> bool:
        given = _digest(password)
        found = digests.get(user)
        some, absent = names[hash(user) % len(names)], user + "\0"
        hash(some), hash(absent)
        other = digests.get((absent, some)[found is None])
        right = hmac.compare_digest(given, (found, other)[found is None] or no_password)
        return right and found is not None

    return check


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
