"""Logins for the HTTP pages of a node: bearer tokens (RFC 6750) and names with passwords (RFC 7617), both from files.

A credential is compared with every one that is accepted, by digests and in constant time: the time of an answer does not depend
on how much of a guess is right, on its length, or on which credential it is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable

from tidelog.model.errors import ConfigError

CHALLENGE = 'Bearer realm="tidelog", Basic realm="tidelog", charset="UTF-8"'
_BEARER, _BASIC = b"bearer", b"basic"


class HttpLogin:
    """The accepted credentials; they stay out of ``repr``."""

    __slots__ = ("_digests",)

    def __init__(self, tokens: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        """``users``: texts ``name:password``."""
        self._digests = (
            *(_digest(_BEARER, token.encode()) for token in tokens),
            *(_digest(_BASIC, user.encode()) for user in users),
        )

    def accepts(self, authorization: bytes | None) -> bool:
        """Whether a request with this ``Authorization`` header, None without one, may read the page."""
        scheme, _, rest = (authorization or b"").partition(b" ")
        kind, presented = scheme.lower(), rest.strip()
        if kind == _BASIC:
            try:
                presented = base64.b64decode(presented, validate=True)
            except binascii.Error:
                return False
        digest = _digest(kind, presented)
        accepted = False
        for each in self._digests:
            accepted |= hmac.compare_digest(each, digest)
        return accepted


def user_of(authorization: bytes | None) -> str | None:
    """The name in a header of the Basic scheme, which was accepted; None for one of another scheme."""
    scheme, _, rest = (authorization or b"").partition(b" ")
    if scheme.lower() != _BASIC:
        return None
    return base64.b64decode(rest.strip(), validate=True).partition(b":")[0].decode("utf-8", "replace")


def tokens_of(text: str, where: str) -> list[str]:
    """The tokens of a file, one a line; several while one replaces another. ConfigError without any, or for one with blanks."""
    found = []
    for number, line in _lines(text):
        token = line.strip()
        if not token.isascii() or len(token.split()) != 1:
            raise ConfigError(f"{where}, line {number}: a token has no blanks, and only characters of ASCII.")
        found.append(token)
    return _some(found, where, "token")


def users_of(text: str, where: str) -> list[str]:
    """The ``name:password`` lines of a file. ConfigError without any, or for another line."""
    found = []
    for number, line in _lines(text):
        name, _, password = line.partition(":")
        if not name or not password:
            raise ConfigError(f"{where}, line {number}: it must be name:password.")
        found.append(line)
    return _some(found, where, "name:password")


def _lines(text: str) -> list[tuple[int, str]]:
    """Numbered, without blank lines and comments."""
    lines = enumerate(text.splitlines(), 1)
    return [(number, line) for number, line in lines if line.strip() and not line.startswith("#")]


def _some(found: list[str], where: str, what: str) -> list[str]:
    if not found:
        raise ConfigError(f"{where} holds no {what}.")
    return found


def _digest(kind: bytes, credential: bytes) -> bytes:
    return hashlib.sha256(kind + b"\0" + credential).digest()
