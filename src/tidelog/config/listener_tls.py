"""The TLS settings of one listener, with Kafka's prefixes: stores, versions, cipher suites, client certificates, names.

``listener.name.<listener>.ssl.<option>`` beats ``ssl.<option>``. On a SASL_SSL listener a bare ``ssl.client.auth`` does not
count, as in Kafka (``tls_warnings`` says so). The rules on which store options go together are those of Kafka's default engine
factory. Files are only named here. Source: KIP-103, KIP-226, KIP-651.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.broker_security import TLS_PROTOCOLS
from tidelog.config.cipher_suites import chosen_suites
from tidelog.config.listener_sasl import ListenerOptions
from tidelog.config.listeners import EndPoint
from tidelog.config.options import Password
from tidelog.model.errors import ConfigError

VERSIONS = ("TLSv1.2", "TLSv1.3")
CLIENT_AUTH = "ssl.client.auth"
_NO_STORE_PASSWORD = "ssl.{}.password is set, but PEM has no password for a store. Remove it; ssl.key.password is for the key."


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """A key store or a trust store: a file, or PEM texts in the settings themselves."""

    option: str
    """The name of its location as an error should give it."""
    location: str | None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)


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
    versions, ciphers = chosen_suites(_name(options, "ssl.cipher.suites"), suites, versions or VERSIONS)
    return TlsSettings(
        listener=listener,
        keys=_key_store(options),
        trusted=_trust_store(options),
        client_auth=_client_auth(options, given, listener, protocol),
        versions=versions,
        ciphers=ciphers,
        verify_hostname=bool(identification),
        mapping_rules=str(options.value("ssl.principal.mapping.rules")),
        allow_dn_changes=options.value("ssl.allow.dn.changes") is True,
        allow_san_changes=options.value("ssl.allow.san.changes") is True,
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


def _key_store(options: ListenerOptions) -> StoreSettings | None:
    location, kind = options.value("ssl.keystore.location"), str(options.value("ssl.keystore.type"))
    password, key_password = _secret(options.value("ssl.keystore.password")), _secret(options.value("ssl.key.password"))
    key, chain = _secret(options.value("ssl.keystore.key")), _secret(options.value("ssl.keystore.certificate.chain"))
    name = _name(options, "ssl.keystore.location")
    if key is not None or chain is not None:
        _check_inline(options, kind, location, password, "keystore")
        if key is None or chain is None:
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain belong together. Set both, or none.")
        return StoreSettings("ssl.keystore.key", None, None, key_password, chain, key)
    return _file(name, location, kind, password, key_password, "keystore")


def _trust_store(options: ListenerOptions) -> StoreSettings | None:
    location, kind = options.value("ssl.truststore.location"), str(options.value("ssl.truststore.type"))
    password, certificates = (
        _secret(options.value("ssl.truststore.password")),
        _secret(options.value("ssl.truststore.certificates")),
    )
    if certificates is not None:
        _check_inline(options, kind, location, password, "truststore")
        return StoreSettings("ssl.truststore.certificates", None, None, None, certificates)
    return _file(_name(options, "ssl.truststore.location"), location, kind, password, None, "truststore")


def _check_inline(options: ListenerOptions, kind: str, location: object, password: str | None, store: str) -> None:
    if kind.upper() != "PEM":
        raise ConfigError(
            f"ssl.{store}.type is {kind}, but PEM texts stand in the settings. Set {_name(options, f'ssl.{store}.type')}=PEM."
        )
    if location is not None:
        raise ConfigError(f"ssl.{store}.location is set, and PEM texts stand in the settings as well. Remove one of them.")
    if password is not None:
        raise ConfigError(_NO_STORE_PASSWORD.format(store))


def _file(
    name: str, location: object, kind: str, password: str | None, key_password: str | None, store: str
) -> StoreSettings | None:
    if not isinstance(location, str) or not location:
        if password is not None:
            raise ConfigError(f"ssl.{store}.password is set, but {name} is not. Name the file, or remove the password.")
        return None
    if kind.upper() == "PEM" and password is not None:
        raise ConfigError(_NO_STORE_PASSWORD.format(store))
    if kind.upper() != "PEM" and password is None and store == "keystore":
        raise ConfigError(
            f"{name} is {location}, but ssl.keystore.password is not set. Set it, or ssl.keystore.type=PEM if the file is PEM."
        )
    return StoreSettings(name, location, password, key_password)


def _name(options: ListenerOptions, option: str) -> str:
    """The name under which the option was given, or the bare one."""
    found = options.get(option)
    return option if found is None else found[0]


def _secret(value: object) -> str | None:
    return value.secret if isinstance(value, Password) else None


def _words(value: object) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return tuple(map(str, value))
