"""Settings that are in no table: what earlier versions had, what other parts of Kafka read, and what is probably a typo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.listener_connections import OPTIONS as CONNECTION_BOUNDS
from tidelog.config.tidelog_options import PREFIX
from tidelog.model.errors import ConfigError

_NO_ZOOKEEPER = "there is no ZooKeeper; the metadata quorum is part of the node"
_ONE_FORMAT = "there is one message format, magic 2"
_FEATURES = "feature levels take its place (tidelog format --feature)"

REMOVED: Final = {
    "advertised.host.name": "advertised.listeners takes its place",
    "advertised.port": "advertised.listeners takes its place",
    "auto.include.jmx.reporter": "metrics are served at /metrics",
    "broker.id.generation.enable": "numbers are not made up; set node.id",
    "control.plane.listener.name": "controller.listener.names takes its place",
    "delegation.token.master.key": "delegation.token.secret.key takes its place",
    "group.coordinator.new.enable": "there is one group coordinator; group.coordinator.rebalance.protocols takes its place",
    "host.name": "listeners takes its place",
    "inter.broker.protocol.version": _FEATURES,
    "log.message.downconversion.enable": _ONE_FORMAT,
    "log.message.format.version": _ONE_FORMAT,
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms and .after.max.ms take its place",
    "offsets.commit.required.acks": "commits always wait for all replicas in sync",
    "port": "listeners takes its place",
    "quota.consumer.default": "quotas are set with kafka-configs",
    "quota.producer.default": "quotas are set with kafka-configs",
    "reserved.broker.max.id": "any number from 0 may be node.id",
}
"""Options of earlier versions, with what took their place."""

AUTHORIZER_SETTINGS: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Read by Kafka's authorizer, not by the broker; without authorizer.class.name they say nothing."""

_OF_TOKENS: Final = ("sasl.login.", "sasl.oauthbearer.")
_OF_LISTENERS: Final = (
    ".connections.max.reauth.ms",
    ".sasl.enabled.mechanisms",
    ".sasl.jaas.config",
    ".sasl.kerberos.principal.to.local.rules",
    ".sasl.kerberos.service.name",
    ".sasl.server.callback.handler.class",
    ".sasl.server.max.receive.size",
    ".connection.failed.authentication.delay.ms",
    *(f".{name}" for name in CONNECTION_BOUNDS),
    *(f".{name}" for name, option in BROKER_OPTIONS.items() if name.startswith("ssl.") and option.inert is None),
    *(f".{name}" for name, option in BROKER_OPTIONS.items() if name.startswith(_OF_TOKENS) and option.inert is None),
    ".tidelog.oauthbearer.accept.any.issuer.and.audience",
    ".tidelog.oauthbearer.groups.claim.name",
    ".tidelog.proxy.protocol.networks",
    ".tidelog.ssl.groups.from.ou",
)
"""Options that a listener may have for itself (``config.listener_sasl``, ``listener_tls``, ``listener_connections``)."""

_PREFIXES: Final = ("listener.name.", "rlmm.config.", "rsm.config.", "config.providers.")


def explain_unknown(name: str) -> str:
    """A warning about a setting that is in no table; empty where it has an effect. ConfigError when it claims to be tidelog's
    own."""
    if name.startswith(PREFIX):
        raise ConfigError(f"{name} is not an option of tidelog.{_nearest(name, BROKER_OPTIONS)}")
    if name in REMOVED:
        return f"{name} is ignored: {REMOVED[name]}."
    if name.startswith(("zookeeper.", "password.encoder.")):
        return f"{name} is ignored: {_NO_ZOOKEEPER}."
    if name in AUTHORIZER_SETTINGS:
        return f"{name} is ignored: no authorizer is set (authorizer.class.name), so everyone may do everything."
    if name.startswith("listener.name.") and name.endswith(_OF_LISTENERS):
        return ""
    if name.startswith(_PREFIXES) or name.endswith(".sasl.jaas.config"):
        return f"{name} is ignored: this setting is not acted on for a single listener or plugin.{_nearest_of_listener(name)}"
    return f"{name} is not an option of a broker and is ignored.{_nearest(name, (*BROKER_OPTIONS, *AUTHORIZER_SETTINGS))}"


def unknown_topic_option(name: str, known: Iterable[str]) -> ConfigError:
    """The refusal of a topic option that does not exist."""
    return ConfigError(f"Unknown topic config name: {name}.{_nearest(name, known)}")


def _nearest_of_listener(name: str) -> str:
    """The nearest setting that one listener may have, for a name that begins with ``listener.name.<listener>.`` and is a typo."""
    prefix, _, option = name.removeprefix("listener.name.").partition(".")
    if not name.startswith("listener.name.") or not option or option in BROKER_OPTIONS:
        return ""
    return _nearest(name, [f"listener.name.{prefix}{each}" for each in _OF_LISTENERS])


def _nearest(name: str, known: Iterable[str]) -> str:
    import difflib  # only who mistyped waits for it

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f" Did you mean {close[0]}?" if close else ""
