"""The mechanisms of a SASL listener, with their users and secrets. Loaded only by a node that has such a listener."""

from __future__ import annotations

import logging
import secrets
from functools import partial

from tidelog.broker.authentication import LoginAudit, Mechanism, SaslListener, sasl_listener
from tidelog.broker.node import ServingNode
from tidelog.config.listener_gssapi import GssapiSettings
from tidelog.config.listener_oauth import OAuthSettings
from tidelog.config.listener_sasl import SaslMechanismSettings, sasl_settings
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import ScramCredential
from tidelog.model.errors import ConfigError
from tidelog.security import plain, scram
from tidelog.security.delegation_tokens import secrets_of
from tidelog.security.plain import PlainServer, fixed_users
from tidelog.security.sasl import SaslServer
from tidelog.security.scram import Found, ScramMechanism, ScramServer, users
from tidelog.security.scram_strangers import ClusterSecret, Strangers
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.violations import LogLimit

log = logging.getLogger(__name__)

NONCE_BYTES = 24
_SECRET = secrets.token_bytes(32)
"""Of this process: all listeners show the same salt for an unknown user, also where the cluster has no secret."""


class FailureLog:
    """Logs failed logins: the first few of each second in full, the rest as a number, so that failures do not fill the disk."""

    def __init__(self, listener: str, runtime: LoopRuntime) -> None:
        self._listener = listener
        self._runtime = runtime
        self._limit = LogLimit()

    @property
    def total(self) -> int:
        return self._limit.total

    def __call__(self, host: str, reason: str) -> None:
        """A client at this address failed to authenticate."""
        if untold := self._limit.untold(self._runtime.real_ms()):
            log.warning("listener %s: %d more logins failed", self._listener, untold)
        if self._limit.takes():
            log.warning("listener %s: a login from %s failed: %s", self._listener, host, reason)


def listener_of(
    name: str, node: ServingNode, config: BrokerConfig, runtime: LoopRuntime, audit: LoginAudit | None = None
) -> SaslListener:
    """What the connections of a SASL listener share."""
    settings = sasl_settings(config.static, name)
    mechanisms = {each.name: _mechanism(each, node, runtime) for each in settings.mechanisms.values()}
    return sasl_listener(
        node,
        node.apis,
        mechanisms,
        failed_delay_ms=settings.failed_delay_ms,
        max_receive_bytes=settings.max_receive_bytes,
        monotonic_ms=runtime.real_ms,
        now_ms=runtime.now_ms,
        failed=FailureLog(name, runtime),
        audit=audit,
    )


def _mechanism(settings: SaslMechanismSettings, node: ServingNode, runtime: LoopRuntime) -> Mechanism:
    if settings.oauth is not None:
        return _tokens(settings.oauth, settings.max_reauth_ms, runtime)
    if settings.gssapi is not None:
        return _tickets(settings.gssapi, settings.max_reauth_ms, runtime)
    if settings.name == "PLAIN":
        assert settings.jaas is not None
        check = fixed_users(settings.jaas.users)
        return Mechanism(partial(PlainServer, check), settings.max_reauth_ms, plain.MAX_MESSAGE_BYTES)
    kind = ScramMechanism.SHA_256 if settings.name == ScramMechanism.SHA_256.title else ScramMechanism.SHA_512

    def credential(name: str) -> ScramCredential | None:
        return node.image.scram.get((name, kind))

    secret = ClusterSecret(node.cluster_id, lambda: node.image.brokers, _SECRET)
    strangers = Strangers(kind, kind.digest, secret, lambda: node.image.scram)

    known = users(credential)
    tokens = secrets_of(node.config.delegation_token_secret_key)

    def lookup(name: str, token: bool) -> Found | None:
        if not token:
            return known(name, token)
        return None if tokens is None else tokens.login(node.image.tokens, node.image.acls, name, kind)

    def begin() -> SaslServer:
        return ScramServer(kind, lookup, secrets.token_urlsafe(NONCE_BYTES), strangers)

    return Mechanism(begin, settings.max_reauth_ms, scram.MAX_MESSAGE_BYTES)


def _tokens(settings: OAuthSettings, max_reauth_ms: int, runtime: LoopRuntime) -> Mechanism:
    try:
        # Only for a node that accepts tokens: they need a library of their own.
        from tidelog.security.oauthbearer import MAX_MESSAGE_BYTES, OAuthBearerServer
        from tidelog.server.serving.issuer_keys import token_check
    except ImportError as error:
        raise ConfigError(f"OAUTHBEARER needs the extra oauth: pip install 'tidelog[oauth]' ({error}).") from error
    return Mechanism(partial(OAuthBearerServer, token_check(settings, runtime)), max_reauth_ms, MAX_MESSAGE_BYTES)


def _tickets(settings: GssapiSettings, max_reauth_ms: int, runtime: LoopRuntime) -> Mechanism:
    try:
        # Only for a node that accepts tickets: they need a library of their own.
        from tidelog.security.gssapi import MAX_TOKEN_BYTES
        from tidelog.server.serving.kerberos import gssapi_server
    except ImportError as error:
        from tidelog.client.net.tickets import MISSING

        raise ConfigError(f"{MISSING} ({error}).") from error
    return Mechanism(gssapi_server(settings, runtime.now_ms), max_reauth_ms, MAX_TOKEN_BYTES)
