"""Key stores and trust stores as PEM: what ``ssl.keystore.*`` and ``ssl.truststore.*`` name, for clients and listeners alike.

A file's first bytes decide its format, as in Java, where a store of type JKS may well be PKCS12: PEM, PKCS12 (with the package
``cryptography``, the extra ``tls``), JKS. PEM needs no package. Nothing here reads files; every error says what to change.
Source: KIP-651 for PEM.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from tidelog.config.jks import MAGIC, JksError, read_jks, unprotect

LARGEST_STORE_BYTES = 16 * 1024 * 1024
_JCEKS = b"\xce\xce\xce\xce"
_ASN1_SEQUENCE = b"\x30"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_LINE = 64
NEEDS_PACKAGE = "is PKCS12, which needs the package cryptography: pip install 'tidelog[tls]'; or convert the store to PEM"


class StoreError(ValueError):
    """A store or a PEM text that cannot be used; the text says which one and what to change, without a full stop."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificates as PEM texts, the key's own certificate first."""

    certificates: str
    key: str = field(repr=False)
    password: str | None = field(default=None, repr=False)
    """Of an encrypted key; None for one in clear."""


def is_pem(data: bytes) -> bool:
    """Whether a store is PEM, which may begin with text of any kind."""
    return not data.startswith((MAGIC, _JCEKS, _ASN1_SEQUENCE))


def read_key_store(data: bytes, where: str, password: str | None, key_password: str | None) -> KeyPair:
    """The key pair of a store in any format. ``where`` names the store in errors: a file or a setting. StoreError.

    ``password``: of the store (JKS, PKCS12). ``key_password``: of the key; None: the store's.
    """
    if data.startswith(MAGIC):
        return _jks_pair(data, where, password, key_password)
    if data.startswith(_ASN1_SEQUENCE):
        return _pkcs12_pair(data, where, password)
    _known(data, where)
    text = _text(data, where)
    return pem_pair(text, text, where, key_password)


def read_trust_store(data: bytes, where: str, password: str | None) -> str:
    """The certificates of a store in any format, as PEM. StoreError, also for a store without a certificate."""
    if data.startswith(MAGIC):
        try:
            found = read_jks(data, password)
        except JksError as problem:
            raise StoreError(f"{where} cannot be read: {problem}") from None
        # Java trusts the certificates of a store's own keys, too.
        made = "".join(map(_certificate, (*found.trusted, *(key.chain[0] for key in found.keys if key.chain))))
    elif data.startswith(_ASN1_SEQUENCE):
        store = _pkcs12(data, where, password)
        made = "".join(_pem_of(each) for each in (store.cert, *store.additional_certs) if each is not None)
    else:
        _known(data, where)
        made = pem_certificates(_text(data, where), where)
    if not made:
        raise StoreError(f"{where} holds no certificate to trust")
    return made


def pem_pair(certificates: str, key: str, where: str, key_password: str | None) -> KeyPair:
    """The key pair in PEM texts, which may be the same. StoreError unless there is exactly one key, and a certificate."""
    keys = [match for match in _BLOCK.finditer(key) if match[1].endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise StoreError(f"{where} must hold exactly one private key in PEM, but holds {len(keys) or 'none'}")
    block = keys[0][0]
    encrypted = keys[0][1].startswith("ENCRYPTED") or "Proc-Type: 4,ENCRYPTED" in block
    if encrypted and key_password is None:
        raise StoreError(f"the private key in {where} is encrypted. Set ssl.key.password")
    chain = pem_certificates(certificates, where)
    if not chain:
        raise StoreError(f"{where} holds no certificate in PEM. Put the key's own first, then those that signed it")
    return KeyPair(chain, block + "\n", key_password if encrypted else None)


def pem_certificates(text: str, where: str) -> str:
    """The certificates in a text that may hold other blocks and words as well, in order. StoreError for a damaged one."""
    found = [
        match[0] for match in _BLOCK.finditer(text) if match[1] in ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
    ]
    for each in found:
        if each.startswith("-----BEGIN TRUSTED"):
            raise StoreError(f"{where} holds a certificate of OpenSSL's own format. Write it by `openssl x509` without -trustout")
        certificate_bytes(each, where)
    return "".join(each + "\n" for each in found)


def certificate_bytes(block: str, where: str) -> bytes:
    """A PEM block in DER. StoreError."""
    lines = [line.strip() for line in block.strip().splitlines()[1:-1]]
    try:
        return base64.b64decode("".join(lines), validate=True)
    except ValueError:
        raise StoreError(f"{where} holds a certificate that is not base64") from None


def certificates_of(text: str) -> list[bytes]:
    """The certificates of a PEM text in DER, in order. StoreError."""
    return [certificate_bytes(match[0], "the text") for match in _BLOCK.finditer(text) if match[1].endswith("CERTIFICATE")]


def _known(data: bytes, where: str) -> None:
    if data.startswith(_JCEKS):
        raise StoreError(
            f"{where} is a JCEKS store, which only Java reads. Convert it: "
            f"keytool -importkeystore -srckeystore {where} -srcstoretype JCEKS -destkeystore NEW.p12 -deststoretype PKCS12"
        )


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise StoreError(f"{where} is no key store: neither PEM nor PKCS12 nor JKS") from None


def _jks_pair(data: bytes, where: str, password: str | None, key_password: str | None) -> KeyPair:
    try:
        found = read_jks(data, password)
        if len(found.keys) != 1:
            names = ", ".join(key.alias for key in found.keys) or "none"
            raise JksError(f"it must hold exactly one private key, but holds: {names}")
        key = found.keys[0]
        secret = password if key_password is None else key_password
        if secret is None:
            raise JksError("its key needs a password; set ssl.keystore.password, or ssl.key.password")
        plain = unprotect(key, secret)
    except JksError as problem:
        raise StoreError(f"{where} cannot be read: {problem}") from None
    return KeyPair("".join(map(_certificate, key.chain)), _block("PRIVATE KEY", plain))


def _pkcs12_pair(data: bytes, where: str, password: str | None) -> KeyPair:
    store = _pkcs12(data, where, password)
    if store.key is None or store.cert is None:
        raise StoreError(f"{where} holds no key with its certificate")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair("".join(map(_pem_of, (store.cert, *store.additional_certs))), key.decode())


def _pkcs12(data: bytes, where: str, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise StoreError(f"{where} {NEEDS_PACKAGE}") from None
    try:
        return pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as problem:
        raise StoreError(f"{where} cannot be read; is the store's password right? ({problem})") from None


def _pem_of(entry: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return str(entry.certificate.public_bytes(Encoding.PEM).decode())


def _certificate(der: bytes) -> str:
    return _block("CERTIFICATE", der)


def _block(kind: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = "\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"
