"""A client's certificates and keys: converts Kafka's ``ssl.*`` settings for Python's ``ssl`` and librdkafka.

Stores are PEM, PKCS12 or JKS (``config.key_store_formats``); this module reads the files and makes TLS contexts, for a node's own
listeners and connections, too.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field

from tidelog.client.settings import Tls
from tidelog.config.key_store_formats import (
    LARGEST_STORE_BYTES,
    KeyPair,
    is_pem,
    pem_pair,
    read_key_store,
    read_trust_store,
)
from tidelog.model.errors import ConfigError

_ESCAPED = ("\\n", "\\=", "\\:", "\\\n", "\\\r")
"""What a properties file makes of line ends, of the ends of base64, and of colons."""
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


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
    allow_versions(context, tls.versions)
    try:
        found = material(tls)
        trust(context, found.authorities)
        if found.certificates is not None:
            show(context, KeyPair(found.certificates, found.key or "", found.key_password))
    except (OSError, ValueError) as error:
        raise ConfigError(f"The certificates or the key of the {prefix}ssl settings cannot be used: {error}.") from error
    return context


def allow_versions(context: ssl.SSLContext, versions: tuple[str, ...]) -> None:
    """Limits the versions to ``versions``; empty: no limit. ``TLSv1.2`` and ``TLSv1.3`` are known."""
    if versions:
        allowed = sorted(VERSIONS[each] for each in versions)
        context.minimum_version, context.maximum_version = allowed[0], allowed[-1]


def trust(context: ssl.SSLContext, authorities: str | None) -> None:
    """Trusts these certificates, or the system's with None. ssl.SSLError for a certificate that OpenSSL cannot read."""
    if authorities is None:
        context.load_default_certs()
        return
    context.load_verify_locations(cadata=authorities)
    # As in Java, a certificate in the trust store is trusted even if another one signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def show(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Shows this certificate to the other side. OSError or ssl.SSLError (wrong password, key of another certificate)."""
    # OpenSSL reads keys from files only, so the file exists only during the call, in memory where the system can. With the
    # password "" OpenSSL does not prompt on the terminal.
    data = f"{pair.key}\n{pair.certificates}".encode()
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("pair", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=pair.password or "")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        both = os.path.join(folder, "pair.pem")
        with os.fdopen(os.open(both, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        context.load_cert_chain(both, password=pair.password or "")


def material(tls: Tls) -> Material:
    """The certificates and keys of the settings, as PEM. OSError or ValueError (StoreError) if they cannot be read."""
    for text in (tls.ca_text, tls.certificate_text, tls.key_text):
        if text is not None and any(mark in text for mark in _ESCAPED):
            raise ValueError(
                "a PEM text has backslashes, as a properties file writes it: give it with real line ends and no backslashes, "
                "or name a file"
            )
    authorities = tls.ca_text
    if authorities is None and tls.ca_file is not None:
        authorities = read_trust_store(read_store(tls.ca_file), tls.ca_file, tls.ca_password)
    certificates, key, password = tls.certificate_text, tls.key_text, tls.key_password
    if certificates is None and tls.certificate_file is not None:
        pair = _pair(tls, tls.certificate_file)
        certificates, key, password = pair.certificates, pair.key, pair.password
    return Material(authorities, certificates, key, password)


def _pair(tls: Tls, where: str) -> KeyPair:
    data = read_store(where)
    if tls.key_file in (None, where) or not is_pem(data):
        return read_key_store(data, where, tls.store_password, tls.key_password)
    assert tls.key_file is not None
    return pem_pair(data.decode(), read_store(tls.key_file).decode(), f"{where} with {tls.key_file}", tls.key_password)


def read_store(path: str) -> bytes:
    """The bytes of a store. ValueError for one that cannot be read or is too large."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_STORE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > LARGEST_STORE_BYTES:
        raise ValueError(f"{path} has more than {LARGEST_STORE_BYTES} bytes")
    return data
