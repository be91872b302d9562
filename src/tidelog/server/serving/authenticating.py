"""Authentication on a node's listeners, and the node's own login to other nodes.

What only SASL needs is imported where it is used: it would be a fiftieth of the start and of the memory of a node without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker.node import ServingNode
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.broker.authentication import SaslListener
    from tidelog.client.settings import Sasl


def sasl_of(name: str, node: ServingNode, config: BrokerConfig, runtime: LoopRuntime) -> SaslListener | None:
    """What the connections of a listener share; None for a listener without SASL."""
    if not config.protocol_map[name].startswith("SASL_"):
        return None
    from tidelog.server.serving.sasl_mechanisms import listener_of

    return listener_of(name, node, config, runtime)


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
    from tidelog.config.listener_sasl import sasl_settings

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
