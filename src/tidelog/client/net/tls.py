"""A client's certificates and keys: converts Kafka's ``ssl.*`` settings for Python's ``ssl`` and librdkafka.

PEM is used as it is, from a file or from the setting itself. PKCS12 is converted to PEM with ``cryptography`` (the extra
``tls``); Java key stores (JKS) must be converted with ``keytool`` first.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidelog.client.settings import Tls
from tidelog.model.errors import ConfigError

LARGEST_STORE_BYTES = 16 * 1024 * 1024
_JKS = b"\xfe\xed\xfe\xed"
_ASN1_SEQUENCE = b"\x30"
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class Material:
    """PEM texts. ``authorities`` None: the system's trust store; ``key`` None: no client certificate."""

    authorities: str | None
    certificates: str | None
    key: str | None = field(repr=False)
    key_password: str | None = field(repr=False)


def tls_context(tls: Tls, prefix: str = "") -> ssl.SSLContext:
    """The TLS context of a client. ConfigError for an unusable file or text; ``prefix``: what users write before setting
    names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify and tls.verify_hostname
    context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    if tls.versions:
        allowed = sorted(_VERSIONS[each] for each in tls.versions)
        context.minimum_version, context.maximum_version = allowed[0], allowed[-1]
    try:
        found = material(tls)
        if found.authorities is not None:
            context.load_verify_locations(cadata=found.authorities)
        else:
            context.load_default_certs()
        if found.certificates is not None:
            _show(context, found)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The certificates or the key of the {prefix}ssl settings cannot be used: {error}.") from error
    return context


def material(tls: Tls) -> Material:
    """The certificates and keys of the settings, as PEM. OSError or ValueError if they cannot be read."""
    authorities, certificates, key, password = tls.ca_text, tls.certificate_text, tls.key_text, tls.key_password
    if authorities is None and tls.ca_file is not None:
        data = _read(tls.ca_file)
        authorities = _trusted(data, tls.ca_password) if data.startswith(_ASN1_SEQUENCE) else data.decode()
    if certificates is None and tls.certificate_file is not None:
        data = _read(tls.certificate_file)
        if data.startswith(_ASN1_SEQUENCE):
            certificates, key, password = _pair(data, tls.store_password, tls.certificate_file)
        else:
            certificates = data.decode()
            key = certificates if tls.key_file in (None, tls.certificate_file) else _read(tls.key_file or "").decode()
    return Material(authorities, certificates, key, password)


def _show(context: ssl.SSLContext, found: Material) -> None:
    # OpenSSL reads keys from files only, so the file exists only during the call. With the password "" OpenSSL does not prompt on
    # the terminal.
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder, "pair.pem")
        both.touch(mode=0o600)
        both.write_text(f"{found.key or ''}\n{found.certificates}")
        context.load_cert_chain(both, password=found.key_password or "")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read(LARGEST_STORE_BYTES + 1)
    if len(data) > LARGEST_STORE_BYTES:
        raise ValueError(f"{path} has more than {LARGEST_STORE_BYTES} bytes")
    if data.startswith(_JKS):
        raise ValueError(f"{path} is a Java key store (JKS), which `keytool -importkeystore -deststoretype PKCS12` converts")
    return data


def _trusted(data: bytes, password: str | None) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    store = _pkcs12(data, password)
    found = [each.certificate for each in (store.cert, *store.additional_certs) if each is not None]
    if not found:
        raise ValueError("the trust store holds no certificate")
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in found)


def _pair(data: bytes, password: str | None, path: str) -> tuple[str, str, None]:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    store = _pkcs12(data, password)
    if store.key is None or store.cert is None:
        raise ValueError(f"{path} holds no key with its certificate")
    chain = "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in (store.cert, *store.additional_certs))
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return chain, key.decode(), None


def _pkcs12(data: bytes, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise ValueError("PKCS12 needs the package cryptography (tidelog[tls]); or convert the store to PEM") from error
    return pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
