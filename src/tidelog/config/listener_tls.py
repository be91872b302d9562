"""The TLS settings of one listener, with Kafka's prefixes: stores, versions, cipher suites, client certificates, names.

``listener.name.<listener>.ssl.<option>`` beats ``ssl.<option>``. On a SASL_SSL listener a bare ``ssl.client.auth`` does not
count, as in Kafka (``tls_warnings`` says so). Source: KIP-103, KIP-226.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.broker_security import TLS_PROTOCOLS
from tidelog.config.cipher_suites import chosen_suites
from tidelog.config.key_store_settings import StoreSettings, key_store, trust_store
from tidelog.config.listener_sasl import ListenerOptions
from tidelog.config.listeners import EndPoint
from tidelog.model.errors import ConfigError

VERSIONS = ("TLSv1.2", "TLSv1.3")
CLIENT_AUTH = "ssl.client.auth"
GROUPS_FROM_OU = "tidelog.ssl.groups.from.ou"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How a listener speaks TLS, and how a node speaks it to that listener of other nodes."""

    listener: str
    keys: StoreSettings | None
    trusted: StoreSettings | None
    """None: the system's authorities."""
    client_auth: str
    """``none``, ``requested`` or ``required``."""
    versions: tuple[str, ...]
    ciphers: tuple[str, ...]
    """OpenSSL's names for TLS 1.2; empty: OpenSSL's choice."""
    verify_hostname: bool
    mapping_rules: str
    allow_dn_changes: bool
    allow_san_changes: bool
    groups_from_ou: bool = False
    """Whether the organizational units in a client's certificate are its groups."""


def tls_settings(given: Mapping[str, str], listener: str, protocol: str) -> TlsSettings:
    """The TLS settings of a listener. ConfigError says what to add or to change."""
    options = ListenerOptions(given, listener)
    if (found := options.get("ssl.engine.factory.class")) is not None and found[1]:
        raise ConfigError(f"{found[0]} names a Java class, which cannot be loaded. Remove it.")
    identification = str(options.value("ssl.endpoint.identification.algorithm") or "")
    if identification.lower() not in ("", "https"):
        raise ConfigError(f"ssl.endpoint.identification.algorithm is {identification}, but must be https, or empty.")
    versions = _words(options.value("ssl.enabled.protocols"))
    for version in versions:
        if version not in VERSIONS:
            raise ConfigError(f"ssl.enabled.protocols holds {version}, which is not served; {' and '.join(VERSIONS)} are.")
    suites = _words(options.value("ssl.cipher.suites"))
    versions, ciphers = chosen_suites(options.given_name("ssl.cipher.suites"), suites, versions or VERSIONS)
    return TlsSettings(
        listener=listener,
        keys=key_store(options),
        trusted=trust_store(options),
        client_auth=_client_auth(options, given, listener, protocol),
        versions=versions,
        ciphers=ciphers,
        verify_hostname=bool(identification),
        mapping_rules=str(options.value("ssl.principal.mapping.rules")),
        allow_dn_changes=options.value("ssl.allow.dn.changes") is True,
        allow_san_changes=options.value("ssl.allow.san.changes") is True,
        # With SASL a certificate only lets a client in.
        groups_from_ou=protocol == "SSL" and options.value(GROUPS_FROM_OU) is True,
    )


def serving_tls(given: Mapping[str, str], listener: str, protocol: str) -> TlsSettings:
    """``tls_settings`` of a listener of this node, which needs a certificate. ConfigError."""
    settings = tls_settings(given, listener, protocol)
    if settings.keys is None:
        name = f"listener.name.{listener.lower()}.ssl.keystore"
        raise ConfigError(
            f"listener {listener} speaks {protocol}, but has no certificate. Set {name}.location (a PEM, PKCS12 or JKS file), or "
            f"{name}.type=PEM with {name}.key and {name}.certificate.chain."
        )
    return settings


def tls_warnings(given: Mapping[str, str], endpoints: Iterable[EndPoint], protocols: Mapping[str, str]) -> list[str]:
    """What looks as if it had an effect on a listener and has none. ``protocols``: of the listeners, by name."""
    points = list(endpoints)
    used = {protocols.get(name, "PLAINTEXT") for name in (*(point.listener for point in points), *_controllers(given))}
    result = [
        f"{name} has no effect: no listener speaks TLS."
        for name, option in BROKER_OPTIONS.items()
        if name.startswith("ssl.") and option.inert is None and name in given and not used & TLS_PROTOCOLS
    ]
    for name in given:
        prefix, _, option_name = name.partition(".ssl.")
        listener = prefix.removeprefix("listener.name.").upper()
        if prefix.startswith("listener.name.") and option_name and (found := protocols.get(listener, "")) not in TLS_PROTOCOLS:
            result.append(f"{name} has no effect: listener {listener} speaks {found or 'nothing, it does not exist'}.")
    return [*result, *_bare_client_auth(given, points)]


def _controllers(given: Mapping[str, str]) -> list[str]:
    return [name.strip().upper() for name in given.get("controller.listener.names", "").split(",")]


def _bare_client_auth(given: Mapping[str, str], endpoints: Iterable[EndPoint]) -> list[str]:
    bare = given.get(CLIENT_AUTH, "none")
    return [
        f"{CLIENT_AUTH} is {bare}, which does not count for listener {point.listener}, because it speaks SASL_SSL: its clients "
        f"need no certificate. Set listener.name.{point.listener.lower()}.{CLIENT_AUTH} to ask for one."
        for point in endpoints
        if point.protocol == "SASL_SSL"
        and bare != "none"
        and f"listener.name.{point.listener.lower()}.{CLIENT_AUTH}" not in given
    ]


def _client_auth(options: ListenerOptions, given: Mapping[str, str], listener: str, protocol: str) -> str:
    value = str(options.value("ssl.client.auth"))
    if protocol == "SASL_SSL" and f"listener.name.{listener.lower()}.{CLIENT_AUTH}" not in given:
        return "none"
    return value


def _words(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return tuple(map(str, value))
