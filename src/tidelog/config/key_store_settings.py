"""The key store and the trust store of a listener: what ``ssl.keystore.*``, ``ssl.truststore.*`` and ``ssl.key.password`` say.

The rules on which of them go together are those of Kafka's default engine factory. Files are only named here;
``key_store_formats`` reads them. Source: KIP-651.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.config.listener_sasl import ListenerOptions
from tidelog.config.options import Password
from tidelog.model.errors import ConfigError

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


def key_store(options: ListenerOptions) -> StoreSettings | None:
    """The certificate of a listener and its key; None where none is named. ConfigError."""
    location, kind = options.value("ssl.keystore.location"), str(options.value("ssl.keystore.type"))
    password, key_password = _secret(options.value("ssl.keystore.password")), _secret(options.value("ssl.key.password"))
    key, chain = _secret(options.value("ssl.keystore.key")), _secret(options.value("ssl.keystore.certificate.chain"))
    name = options.given_name("ssl.keystore.location")
    if key is not None or chain is not None:
        _check_inline(options, kind, location, password, "keystore")
        if key is None or chain is None:
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain belong together. Set both, or none.")
        return StoreSettings("ssl.keystore.key", None, None, key_password, chain, key)
    return _file(name, location, kind, password, key_password, "keystore")


def trust_store(options: ListenerOptions) -> StoreSettings | None:
    """The authorities that a listener trusts; None: the system's. ConfigError."""
    location, kind = options.value("ssl.truststore.location"), str(options.value("ssl.truststore.type"))
    password, certificates = (
        _secret(options.value("ssl.truststore.password")),
        _secret(options.value("ssl.truststore.certificates")),
    )
    if certificates is not None:
        _check_inline(options, kind, location, password, "truststore")
        return StoreSettings("ssl.truststore.certificates", None, None, None, certificates)
    return _file(options.given_name("ssl.truststore.location"), location, kind, password, None, "truststore")


def _check_inline(options: ListenerOptions, kind: str, location: object, password: str | None, store: str) -> None:
    if kind.upper() != "PEM":
        raise ConfigError(
            f"ssl.{store}.type is {kind}, but PEM texts stand in the settings. Set {options.given_name(f'ssl.{store}.type')}=PEM."
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


def _secret(value: object) -> str | None:
    return value.secret if isinstance(value, Password) else None
