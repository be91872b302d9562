"""Whether a node needs TLS at all; one in plain text loads nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.config.broker_security import TLS_PROTOCOLS
from tidelog.config.resolve import BrokerConfig
from tidelog.server.runtime import LoopRuntime

if TYPE_CHECKING:
    from tidelog.server.serving.node_tls import NodeTls


def node_tls(config: BrokerConfig, runtime: LoopRuntime, first: Mapping[str, str]) -> NodeTls | None:
    """The TLS of a node; None when none of its listeners, and none that it connects to, speaks it. ``first``: see
    ``NodeTls``."""
    names = {point.listener for point in config.endpoints} | {name.upper() for name in config.controller_listener_names}
    if not any(config.protocol_map.get(name) in TLS_PROTOCOLS for name in names):
        return None
    from tidelog.server.serving.node_tls import NodeTls

    return NodeTls(config, runtime, first)


def check_stores(config: BrokerConfig) -> None:
    """Reads the key and trust stores of this node's own listeners, as the settings name them: log dirs are formatted only for a
    node that could start. ConfigError. Blocks."""
    for point in config.endpoints:
        protocol = config.protocol_map.get(point.listener, "PLAINTEXT")
        if protocol in TLS_PROTOCOLS:
            from tidelog.config.listener_tls import serving_tls
            from tidelog.server.serving.tls_context import read_stores, server_context

            settings = serving_tls(config.static, point.listener, protocol)
            server_context(settings, read_stores(settings))
