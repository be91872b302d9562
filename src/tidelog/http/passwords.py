"""Passwords as scrypt hashes (RFC 7914), for the users' files of console and registry, compared in constant time.

The text is ``scrypt:COST:BLOCK:PARALLEL:SALT:HASH``, salt and hash in base64. A file may have a higher cost
than ``hashed`` gives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from tidelog.model.errors import ConfigError

_NAME: Final = "scrypt"
_COST, _BLOCK, _PARALLEL = 1 << 14, 8, 1
_MEMORY: Final = 64 << 20
_SIZE: Final = 32
MAX_PASSWORD: Final = 1024
"""Characters of a password."""


def hashed(password: str, salt: bytes) -> str:
    """The text for the users' file. ``salt``: 16 random bytes."""
    return f"{_NAME}:{_COST}:{_BLOCK}:{_PARALLEL}:{_text(salt)}:{_text(_digest(password, salt, _COST, _BLOCK, _PARALLEL))}"


def check_form(stored: str, where: str, maker: str) -> None:
    """ConfigError, without the text, unless it is one of ``hashed``. ``maker``: the command that makes one."""
    try:
        _parts(stored)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}; {maker} makes one.") from None


def is_right(password: str, stored: str) -> bool:
    """Whether it is the password. It takes about 50 ms and 16 MB."""
    cost, block, parallel, salt, digest = _parts(stored)
    return hmac.compare_digest(_digest(password, salt, cost, block, parallel), digest)


def no_password(salt: bytes) -> str:
    """A hash that no password has: an unknown user costs as much time as a known one."""
    return f"{_NAME}:{_COST}:{_BLOCK}:{_PARALLEL}:{_text(salt)}:{_text(bytes(_SIZE))}"


def _digest(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    given = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(given, salt=salt, n=cost, r=block, p=parallel, maxmem=_MEMORY, dklen=_SIZE)


def _parts(stored: str) -> tuple[int, int, int, bytes, bytes]:
    fields = stored.split(":")
    if len(fields) != 6 or fields[0] != _NAME or not all(each.isdecimal() for each in fields[1:4]):
        raise ValueError("this is not a hashed password")
    cost, block, parallel = map(int, fields[1:4])
    if cost & (cost - 1) or not _COST <= cost <= 1 << 20 or 128 * cost * block * parallel > _MEMORY - (1 << 20):
        raise ValueError("its cost is too low, or takes more than 63 MB")
    try:
        salt, digest = (base64.b64decode(each, validate=True) for each in fields[4:])
    except binascii.Error:
        raise ValueError("its salt or hash is not base64") from None
    if len(salt) < 8 or len(digest) != _SIZE:
        raise ValueError("its salt or hash is too short")
    return cost, block, parallel, salt, digest


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
