"""Users that may send requests, from a file, by HTTP basic authentication.

A line is ``name: role, HASH``, made by ``tidelog registry --hash-password NAME``, with the role ``read`` or ``write``; the hash
is of ``tidelog.http.passwords``, as in the console's file. Lines that begin with ``#`` are comments. Proofs that were right once
are kept as digests under a key of this process, so that scrypt runs once for each.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections import OrderedDict
from dataclasses import dataclass, field

from tidelog.http import passwords
from tidelog.model.errors import ConfigError

READ, WRITE = "read", "write"
_ROLES = (READ, WRITE)
_MAKER = "tidelog registry --hash-password NAME"
_KEPT = 1024
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class User:
    """A user of the file. The hash is of their password."""

    name: str
    role: str
    password_hash: str = field(repr=False)

    @property
    def may_write(self) -> bool:
        """Whether the user may change what is registered."""
        return self.role == WRITE


def parse_users(text: str) -> dict[str, User]:
    """The users of a file. ConfigError names the line, and not what stands there."""
    found: dict[str, User] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, rest = line.partition(":")
        role, _, proof = (each.strip() for each in rest.partition(","))
        user = User(name.strip(), role, proof)
        if not colon or not user.name or role not in _ROLES:
            raise ConfigError(f"Line {number} of the users is not 'name: read|write, HASH': {_MAKER} makes such a line.")
        passwords.check_form(proof, f"Line {number} of the users", _MAKER)
        if user.name in found:
            raise ConfigError(f"Line {number} of the users names {user.name!r} again.")
        found[user.name] = user
    if not found:
        raise ConfigError("The file of users has none: remove the option, or add a line.")
    return found


def credentials(header: bytes) -> tuple[str, str] | None:
    """Name and password in an Authorization header of the scheme Basic; None for another header."""
    scheme, _, encoded = header[:_LONGEST].partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (name.decode(), password.decode()) if colon else None
    except (binascii.Error, ValueError):
        return None


class Users:
    """``checked`` is slow, and may be called in any thread; the rest belongs to one."""

    def __init__(self, users: dict[str, User]) -> None:
        self._users = users
        self._key = os.urandom(32)
        self._right: OrderedDict[bytes, User] = OrderedDict()
        self._stranger = passwords.no_password(os.urandom(16))

    def known(self, header: bytes) -> User | None:
        """The user of an Authorization header that was right before."""
        return self._right.get(self.digest(header)) if len(header) <= _LONGEST else None

    def checked(self, header: bytes) -> User | None:
        """The user of an Authorization header; None for a wrong one. It takes as long for an unknown name."""
        given = credentials(header)
        if given is None:
            return None
        name, password = given
        user = self._users.get(name)
        right = passwords.is_right(password, self._stranger if user is None else user.password_hash)
        return user if right else None

    def remember(self, header: bytes, user: User) -> None:
        """Let ``known`` find the user of a header that was right."""
        self._right[self.digest(header)] = user
        while len(self._right) > _KEPT:
            self._right.popitem(last=False)

    def digest(self, header: bytes) -> bytes:
        """What stands for a header in memory."""
        return hmac.digest(self._key, header, "sha256")
