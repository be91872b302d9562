"""The OAUTHBEARER settings of one listener: which tokens are accepted (KIP-768, KIP-1139).

Apache Kafka accepts tokens without a signature unless another callback handler is named. Here nothing is accepted without being
asked for: a listener names one of the two handlers, and one that checks signatures has to know the issuer and the audience.
All of these settings are static: no request can point a node at other keys (CVE-2025-27817).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidelog.config.jaas import JaasEntry
from tidelog.model.errors import ConfigError

HANDLER = "sasl.server.callback.handler.class"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
VALIDATOR = _PACKAGE + "OAuthBearerValidatorCallbackHandler"
_VALIDATORS = (VALIDATOR, _PACKAGE + "secured.OAuthBearerValidatorCallbackHandler")
"""Tokens are checked; the second is the class's name before Kafka 4."""
UNSECURED = _PACKAGE + "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
"""Tokens without a signature are accepted: for tests."""
HANDLERS = (*_VALIDATORS, UNSECURED)
LOGIN_HANDLER = "sasl.login.callback.handler.class"
LOGIN_HANDLERS = (_PACKAGE + "OAuthBearerLoginCallbackHandler", _PACKAGE + "secured.OAuthBearerLoginCallbackHandler")
"""A client or a node fetches its token; the second is the class's name before Kafka 4."""
OF_LOGINS = (
    LOGIN_HANDLER,
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
)
"""Settings that only a node's own login reads."""
URL, ISSUER, AUDIENCE = (
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.expected.audience",
)
ANY_TOKEN = "tidelog.oauthbearer.accept.any.issuer.and.audience"
GROUPS_CLAIM = "tidelog.oauthbearer.groups.claim.name"
SCHEMES = ("https://", "file:/")
OF_TLS = "ssl."
_OF_JAVA = ("keymanager.algorithm", "provider", "secure.random.implementation", "trustmanager.algorithm")
"""Options of TLS, after ``ssl.``, that name something of Java's."""
"""How options of the login module begin that say how the provider's endpoints are reached."""
_UNSECURED_OPTIONS = {
    "unsecuredValidatorPrincipalClaimName": "sub",
    "unsecuredValidatorScopeClaimName": "scope",
    "unsecuredValidatorRequiredScope": "",
    "unsecuredValidatorAllowableClockSkewMs": "0",
}


class OAuthSettings(NamedTuple):
    """Which tokens a listener accepts."""

    secured: bool
    """Whether signatures are checked."""
    url: str
    """Where the issuer's keys are: ``https:`` or ``file:``."""
    audiences: tuple[str, ...]
    issuer: str | None
    skew_ms: int
    name_claim: str
    scope_claim: str
    required_scopes: frozenset[str]
    refresh_ms: int
    retry_ms: int
    max_retry_ms: int
    groups_claim: str | None = None
    """The claim that names the user's groups; None: tokens name none."""
    tls: tuple[tuple[str, str], ...] = ()
    """The ``ssl.*`` settings for fetching the keys; none of them: the system's authorities count."""


def endpoint_tls(options: Mapping[str, str]) -> dict[str, str]:
    """The ``ssl.*`` options of a login module that say how the provider is reached. Left out is what only Java has: names of its
    algorithms, and ``SSL`` as the protocol, which means whatever Java offers."""
    found = {name.removeprefix(OF_TLS): text for name, text in options.items() if name.startswith(OF_TLS)}
    return {OF_TLS + name: text for name, text in found.items() if name not in _OF_JAVA and (name, text) != ("protocol", "SSL")}


def oauth_settings(value: Callable[[str], Any], handler: tuple[str, str] | None, jaas: JaasEntry | None) -> OAuthSettings:
    """``value``: an option as the listener sees it; ``handler``: the callback handler, as (name of the setting, class).

    ConfigError says what to set.
    """
    if handler is None or not handler[1]:
        raise ConfigError(
            f"OAUTHBEARER is offered, but {HANDLER} does not say how tokens are checked. Set it to {VALIDATOR}, or, to accept "
            f"tokens without a signature in a test, to {UNSECURED}."
        )
    if handler[1] == UNSECURED:
        return _unsecured(handler[0], jaas, value(GROUPS_CLAIM) or None)
    if handler[1] not in _VALIDATORS:
        raise ConfigError(
            f"{handler[0]} names a Java class, which cannot be loaded; {VALIDATOR} and {UNSECURED} are known by their names."
        )
    found = OAuthSettings(
        secured=True,
        url=value(URL) or "",
        audiences=tuple(value(AUDIENCE)),
        issuer=value(ISSUER) or None,
        skew_ms=1000 * value("sasl.oauthbearer.clock.skew.seconds"),
        name_claim=value("sasl.oauthbearer.sub.claim.name"),
        scope_claim=value("sasl.oauthbearer.scope.claim.name"),
        required_scopes=frozenset(),
        refresh_ms=value("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        retry_ms=value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        max_retry_ms=value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        groups_claim=value(GROUPS_CLAIM) or None,
        tls=() if jaas is None else tuple(sorted(endpoint_tls(jaas.options).items())),
    )
    if not found.url.lower().startswith(SCHEMES):
        raise ConfigError(f"OAUTHBEARER needs {URL}: the address of the issuer's keys, an https: or a file: URL.")
    if not value(ANY_TOKEN) and (found.issuer is None or not found.audiences):
        missing = [name for name, given in ((ISSUER, found.issuer), (AUDIENCE, found.audiences)) if not given]
        raise ConfigError(
            f"{' and '.join(missing)} must be set, or the node accepts tokens that the issuer made for other services. "
            f"{ANY_TOKEN}=true accepts them."
        )
    return found


def _unsecured(setting: str, jaas: JaasEntry | None, groups_claim: str | None) -> OAuthSettings:
    given = {} if jaas is None else {name: text for name, text in jaas.options.items() if name.startswith("unsecuredValidator")}
    if unknown := sorted(set(given) - set(_UNSECURED_OPTIONS)):
        raise ConfigError(f"{setting}: the login module has an unknown option {unknown[0]}.")
    options = {**_UNSECURED_OPTIONS, **given}
    skew = options["unsecuredValidatorAllowableClockSkewMs"]
    if not skew.isdecimal():
        raise ConfigError(f"unsecuredValidatorAllowableClockSkewMs is {skew!r}, but must be a number of ms.")
    return OAuthSettings(
        secured=False,
        url="",
        audiences=(),
        issuer=None,
        skew_ms=int(skew),
        name_claim=options["unsecuredValidatorPrincipalClaimName"],
        scope_claim=options["unsecuredValidatorScopeClaimName"],
        required_scopes=frozenset(options["unsecuredValidatorRequiredScope"].split()),
        refresh_ms=0,
        retry_ms=0,
        max_retry_ms=0,
        groups_claim=groups_claim,
    )
