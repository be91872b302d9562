"""Authentication on a node's listeners: the mechanisms with their users and secrets, and the node's own login to other nodes."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tidelog.broker.authentication import Mechanism, SaslListener, sasl_listener
from tidelog.broker.node import ServingNode
from tidelog.config.listener_oauth import OAuthSettings
from tidelog.config.listener_sasl import SaslMechanismSettings, sasl_settings
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import ScramCredential
from tidelog.model.errors import ConfigError
from tidelog.security.plain import PlainServer, fixed_users
from tidelog.security.sasl import SaslServer
from tidelog.security.scram import ScramMechanism, ScramServer, users
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.violations import LogLimit

if TYPE_CHECKING:
    from tidelog.client.settings import Sasl

log = logging.getLogger(__name__)

NONCE_BYTES = 24


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


def sasl_of(name: str, node: ServingNode, config: BrokerConfig, runtime: LoopRuntime) -> SaslListener | None:
    """What the connections of a listener share; None for a listener without SASL."""
    if not config.protocol_map[name].startswith("SASL_"):
        return None
    settings = sasl_settings(config.static, name)
    secret = secrets.token_bytes(32)
    mechanisms = {each.name: _mechanism(each, node, secret, runtime) for each in settings.mechanisms.values()}
    return sasl_listener(
        node,
        node.apis,
        mechanisms,
        failed_delay_ms=settings.failed_delay_ms,
        max_receive_bytes=settings.max_receive_bytes,
        monotonic_ms=runtime.real_ms,
        now_ms=runtime.now_ms,
        failed=FailureLog(name, runtime),
    )


def _mechanism(settings: SaslMechanismSettings, node: ServingNode, secret: bytes, runtime: LoopRuntime) -> Mechanism:
    if settings.oauth is not None:
        return Mechanism(_tokens(settings.oauth, runtime), settings.max_reauth_ms)
    if settings.name == "PLAIN":
        assert settings.jaas is not None
        return Mechanism(partial(PlainServer, fixed_users(settings.jaas.users)), settings.max_reauth_ms)
    kind = ScramMechanism.SHA_256 if settings.name == ScramMechanism.SHA_256.title else ScramMechanism.SHA_512

    def credential(name: str) -> ScramCredential | None:
        return node.image.scram.get((name, kind))

    def begin() -> SaslServer:
        return ScramServer(kind, users(credential), secrets.token_urlsafe(NONCE_BYTES), secret)

    return Mechanism(begin, settings.max_reauth_ms)


def _tokens(settings: OAuthSettings, runtime: LoopRuntime) -> Callable[[], SaslServer]:
    try:
        # Only for a node that accepts tokens: they need a library of their own.
        from tidelog.security.oauthbearer import OAuthBearerServer
        from tidelog.server.serving.issuer_keys import token_check
    except ImportError as error:
        raise ConfigError(f"OAUTHBEARER needs the extra oauth: pip install 'tidelog[oauth]' ({error}).") from error
    return partial(OAuthBearerServer, token_check(settings, runtime))


def broker_login(config: BrokerConfig) -> Sasl | None:
    """How this node logs in on other brokers; None without SASL between them, or without other brokers."""
    if config.embedded:
        return None
    option = "sasl.mechanism.inter.broker.protocol"
    mechanism = config.sasl_mechanism_inter_broker_protocol if option in config.static else None
    return own_login(config, config.inter_broker_listener, mechanism, option)


def controller_login(config: BrokerConfig) -> Sasl | None:
    """How this node logs in on controllers; None without SASL there. Kafka, too, goes by the first controller listener."""
    if config.embedded or not config.controller_listener_names:
        return None
    option = "sasl.mechanism.controller.protocol"
    mechanism = config.sasl_mechanism_controller_protocol if option in config.static else None
    return own_login(config, config.controller_listener_names[0].upper(), mechanism, option)


def own_login(config: BrokerConfig, listener: str, mechanism: str | None, option: str) -> Sasl | None:
    """How this node logs in on a listener of other nodes; None for a listener without SASL.

    ``mechanism``: the value of ``option``; None where it is not set: the first mechanism with a login. ConfigError without a name
    and a password for it.
    """
    if not config.protocol_map.get(listener, "PLAINTEXT").startswith("SASL_"):
        return None
    offered = sasl_settings(config.static, listener).mechanisms
    if mechanism is not None and mechanism not in offered:
        raise ConfigError(
            f"{option} is {mechanism}, but listener {listener} offers {', '.join(offered)} (sasl.enabled.mechanisms)."
        )
    for name in [mechanism] if mechanism is not None else offered:
        options = jaas.options if (jaas := offered[name].jaas) is not None else {}
        if options.get("username") and options.get("password"):
            from tidelog.client.settings import Sasl  # The settings of clients: only for a node that logs in.

            return Sasl(name, options["username"], options["password"])
    wanted = (mechanism or next(iter(offered))).lower()
    raise ConfigError(
        f"this node has no login for listener {listener}; put username and password into "
        f"listener.name.{listener.lower()}.{wanted}.sasl.jaas.config ({option})."
    )
