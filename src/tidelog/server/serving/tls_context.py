"""TLS contexts of a node: reads the stores that a listener's settings name, for its clients and for its connections to others."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from tidelog.client.net.tls import allow_versions, read_store, show, trust
from tidelog.config.key_store_formats import (
    KeyPair,
    certificates_of,
    pem_certificates,
    pem_pair,
    read_key_store,
    read_trust_store,
)
from tidelog.config.key_store_settings import StoreSettings
from tidelog.config.listener_tls import TlsSettings
from tidelog.model.der import DerError
from tidelog.model.errors import ConfigError
from tidelog.security.certificates import Certificate, parse_certificate

_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Stores(NamedTuple):
    """The contents of a listener's stores."""

    pair: KeyPair | None
    authorities: str | None
    """PEM; None: the system's."""


def read_stores(settings: TlsSettings) -> Stores:
    """Reads the files. ConfigError says which setting or file cannot be used. Blocks."""
    try:
        return Stores(
            None if settings.keys is None else _pair(settings.keys),
            None if settings.trusted is None else _authorities(settings.trusted),
        )
    except (OSError, ValueError) as problem:
        raise ConfigError(f"listener {settings.listener}: {_reason(problem)}.") from None


def certificate_of(settings: TlsSettings, pair: KeyPair) -> Certificate:
    """The facts of the key's own certificate. ConfigError, which names the file or the setting, for one that cannot be read."""
    try:
        return parse_certificate(certificates_of(pair.certificates)[0])
    except (DerError, IndexError) as problem:
        raise ConfigError(
            f"listener {settings.listener}: the key's certificate in {_where(settings)} is damaged: {problem}."
        ) from None


def server_context(settings: TlsSettings, stores: Stores) -> ssl.SSLContext:
    """For the listener's clients. ConfigError for a key or a certificate that OpenSSL refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = _VERIFY[settings.client_auth]
    _apply(context, settings, stores, trusts=settings.client_auth != "none")
    return context


def client_context(settings: TlsSettings, stores: Stores) -> ssl.SSLContext:
    """For connections to that listener of other nodes. ConfigError as for ``server_context``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.verify_hostname
    _apply(context, settings, stores, trusts=True)
    return context


def _apply(context: ssl.SSLContext, settings: TlsSettings, stores: Stores, *, trusts: bool) -> None:
    allow_versions(context, settings.versions)
    try:
        if settings.ciphers:
            context.set_ciphers(":".join(settings.ciphers))
        if trusts:
            trust(context, stores.authorities)
        if stores.pair is not None:
            show(context, stores.pair)
    except (OSError, ValueError) as problem:
        raise ConfigError(f"listener {settings.listener}: {_where(settings)} cannot be used: {_reason(problem)}.") from None
    if settings.ciphers:
        offered = {each["name"] for each in context.get_ciphers()}
        if missing := [name for name in settings.ciphers if name not in offered]:
            raise ConfigError(f"ssl.cipher.suites: OpenSSL here does not offer {', '.join(missing)}. Remove them.")


def _where(settings: TlsSettings) -> str:
    stores = [store for store in (settings.keys, settings.trusted) if store is not None]
    return " or ".join(store.location or store.option for store in stores) or "the system's trust store"


def _reason(problem: Exception) -> str:
    if not isinstance(problem, ssl.SSLError):
        return str(problem)
    if "PEM lib" in str(problem):
        return "OpenSSL cannot read the key or a certificate (is ssl.key.password right?)"
    return (problem.reason or str(problem)).replace("_", " ").lower()


def _pair(store: StoreSettings) -> KeyPair:
    if store.key is not None:
        return pem_pair(store.certificates or "", store.key, store.option, store.key_password)
    assert store.location is not None
    return read_key_store(read_store(store.location), store.location, store.password, store.key_password)


def _authorities(store: StoreSettings) -> str:
    if store.location is not None:
        return read_trust_store(read_store(store.location), store.location, store.password)
    found = pem_certificates(store.certificates or "", store.option)
    if not found:
        raise ValueError(f"{store.option} holds no certificate in PEM")
    return found
