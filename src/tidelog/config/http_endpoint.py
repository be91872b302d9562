"""The security of ``tidelog.http.listener``: its own certificate, and who may read what a node says about itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tidelog.config.key_store_settings import StoreSettings
from tidelog.config.listener_tls import VERSIONS, TlsSettings
from tidelog.config.listeners import parse_address
from tidelog.config.options import Password
from tidelog.config.values import NodeValues
from tidelog.model.addresses import is_loopback
from tidelog.model.errors import ConfigError

LISTENER = "tidelog.http.listener"
KEYS, TRUSTED = "tidelog.http.ssl.keystore.location", "tidelog.http.ssl.truststore.location"
CLIENT_AUTH = "tidelog.http.ssl.client.auth"
TOKEN_PRINCIPAL = "tidelog.http.bearer.token.principal"
TOKENS, USERS = "tidelog.http.bearer.token.file", "tidelog.http.basic.credentials.file"


class HttpEndpointSecurity(NamedTuple):
    """What a client of the HTTP listener needs. Both files None: no login."""

    tls: TlsSettings | None
    """None: plain text."""
    token_file: str | None
    user_file: str | None
    token_principal: tuple[str, str]
    """Whom the authorizer is asked about for a client with a token."""


def endpoint_security(config: NodeValues) -> HttpEndpointSecurity:
    """The security of the HTTP listener. ConfigError says what to add."""
    return HttpEndpointSecurity(
        _tls(config),
        config.tidelog_http_bearer_token_file or None,
        config.tidelog_http_basic_credentials_file or None,
        _token_principal(config),
    )


def endpoint_warnings(config: NodeValues, given: Mapping[str, str]) -> Iterator[str]:
    """What strangers can read on a network, although the rest of the node is secured."""
    listener = config.tidelog_http_listener
    if not listener or is_loopback(parse_address(LISTENER, listener)[0]):
        return
    found = endpoint_security(config)
    has_login = found.token_file is not None or found.user_file is not None or _asks_for_certificates(found)
    if given.get("authorizer.class.name") and not has_login:
        yield f"{LISTENER} is {listener}, where everyone can read the metrics. Set {TOKENS}, {USERS}, or an address of loopback."
    if (found.token_file or found.user_file) and found.tls is None:
        yield f"{LISTENER} is {listener} without TLS, so tokens and passwords travel in clear. Set {KEYS}."


def _token_principal(config: NodeValues) -> tuple[str, str]:
    text = config.tidelog_http_bearer_token_principal
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise ConfigError(f"{TOKEN_PRINCIPAL} is {text!r}: it must be a principal such as User:console.")
    return kind, name


def _asks_for_certificates(found: HttpEndpointSecurity) -> bool:
    return found.tls is not None and found.tls.client_auth == "required"


def _tls(config: NodeValues) -> TlsSettings | None:
    location, trusted = config.tidelog_http_ssl_keystore_location, config.tidelog_http_ssl_truststore_location
    client_auth = config.tidelog_http_ssl_client_auth
    if not location:
        if trusted or client_auth != "none":
            raise ConfigError(f"{TRUSTED if trusted else CLIENT_AUTH} is set, but {KEYS} is not. Name the node's certificate.")
        return None
    if client_auth != "none" and not trusted:
        raise ConfigError(f"{CLIENT_AUTH} is {client_auth}, but {TRUSTED} is not set. Name the authorities of the clients.")
    return TlsSettings(
        listener=LISTENER,
        keys=StoreSettings(
            KEYS,
            location,
            _secret(config.tidelog_http_ssl_keystore_password),
            _secret(config.tidelog_http_ssl_key_password),
        ),
        trusted=StoreSettings(TRUSTED, trusted, _secret(config.tidelog_http_ssl_truststore_password)) if trusted else None,
        client_auth=client_auth,
        versions=VERSIONS,
        ciphers=(),
        verify_hostname=False,
        mapping_rules="DEFAULT",
        # No other node knows this certificate by its names.
        allow_dn_changes=True,
        allow_san_changes=True,
    )


def _secret(value: object) -> str | None:
    return value.secret if isinstance(value, Password) else None
