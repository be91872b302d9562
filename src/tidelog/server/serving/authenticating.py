"""Authentication on a node's listeners.

What only SASL needs is imported where it is used: it would be a fiftieth of the start and of the memory of a node without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker.node import ServingNode
from tidelog.config.resolve import BrokerConfig
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.broker.authentication import LoginAudit, SaslListener
    from tidelog.server.serving.session_ending import SessionEnding


def sasl_of(
    name: str, node: ServingNode, config: BrokerConfig, runtime: LoopRuntime, audit: LoginAudit | None = None
) -> SaslListener | None:
    """What the connections of a listener share; None for a listener without SASL."""
    if not config.protocol_map[name].startswith("SASL_"):
        return None
    from tidelog.server.serving.sasl_mechanisms import listener_of

    return listener_of(name, node, config, runtime, audit)


def session_ending(config: BrokerConfig) -> SessionEnding | None:
    """What ends the sessions of changed users; None where ``tidelog.scram.changes.end.sessions`` is off."""
    if not config.tidelog_scram_changes_end_sessions:
        return None
    from tidelog.server.serving.session_ending import SessionEnding

    return SessionEnding()
