"""Java key stores (JKS): a reader of the format that ``keytool`` wrote before Java 9 and still writes with ``-storetype JKS``.

A file is a header, entries, and a SHA-1 digest over a salt word, the password and all bytes before it. A trusted certificate is
in clear; a private key is XORed with a stream of SHA-1 digests (Sun's key protector), which tells whether the password is
right.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

from tidelog.model.der import OCTET_STRING, SEQUENCE, DerError, children, object_id, whole

MAGIC = b"\xfe\xed\xfe\xed"
_DIGEST_SALT = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_KEY, _CERTIFICATE = 1, 2


class JksError(ValueError):
    """A store that cannot be read; the text is the reason."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key with its certificates."""

    alias: str
    protected: bytes = field(repr=False)
    """An EncryptedPrivateKeyInfo; ``unprotect`` opens it."""
    chain: tuple[bytes, ...]
    """Certificates in DER, the key's own first."""


@dataclass(frozen=True, slots=True)
class Jks:
    """The entries of a store, in the order of the file."""

    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]
    """Trusted certificates in DER."""


def read_jks(data: bytes, password: str | None) -> Jks:
    """The entries. The digest is checked where there is a password. JksError."""
    if len(data) < len(MAGIC) + 8 + _DIGEST_BYTES or not data.startswith(MAGIC):
        raise JksError("it is cut off, or not a JKS store")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(_java_bytes(password) + _DIGEST_SALT + body).digest()
        if not hmac.compare_digest(expected, digest):
            raise JksError("the store's password is wrong, or the file is damaged")
    reader = _Reader(body, len(MAGIC))
    version, count = reader.number(4), reader.number(4)
    if version not in (1, 2):
        raise JksError(f"it has version {version}; 1 and 2 are known")
    keys: list[JksKey] = []
    trusted: list[bytes] = []
    for _ in range(count):
        kind, alias = reader.number(4), reader.text()
        reader.take(8)  # when the entry was made
        if kind == _KEY:
            protected = reader.take(reader.number(4))
            keys.append(JksKey(alias, protected, tuple(reader.certificate(version) for _ in range(reader.number(4)))))
        elif kind == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise JksError(f"an entry is of kind {kind}; 1 (key) and 2 (certificate) are known")
    return Jks(tuple(keys), tuple(trusted))


def unprotect(key: JksKey, password: str) -> bytes:
    """The private key as PKCS#8 in DER. JksError when the password is wrong."""
    try:
        algorithm, protected = children(whole(key.protected, SEQUENCE))
        name = object_id(children(algorithm)[0])
    except (DerError, ValueError, IndexError) as problem:
        raise JksError(f"the key {key.alias!r} is damaged: {problem}") from None
    if name != _KEY_PROTECTOR:
        raise JksError(f"the key {key.alias!r} is protected by {name}, which is not JKS's own protection")
    blob = protected.content
    if protected.tag != OCTET_STRING or len(blob) < 2 * _DIGEST_BYTES:
        raise JksError(f"the key {key.alias!r} is damaged")
    secret = _java_bytes(password)
    block, sealed, check = blob[:_DIGEST_BYTES], blob[_DIGEST_BYTES:-_DIGEST_BYTES], blob[-_DIGEST_BYTES:]
    plain = bytearray()
    for at in range(0, len(sealed), _DIGEST_BYTES):
        block = hashlib.sha1(secret + block).digest()
        plain += bytes(a ^ b for a, b in zip(sealed[at : at + _DIGEST_BYTES], block, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):
        raise JksError(f"the password of the key {key.alias!r} is wrong")
    return bytes(plain)


def _java_bytes(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Reads big-endian fields one after another; JksError at the end of the data."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise JksError("it is cut off")
        found = self._data[self._at : self._at + count]
        self._at += count
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def text(self) -> str:
        (length,) = struct.unpack(">H", self.take(2))
        return self.take(length).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        kind = self.text() if version == 2 else "X.509"
        found = self.take(self.number(4))
        if kind != "X.509":
            raise JksError(f"a certificate is of kind {kind}; X.509 is known")
        return found
