"""The connection of an admin tool: to brokers, or directly to the active controller (KIP-919).

Brokers forward what only the controller can decide. When no broker is running, or brokers are the problem, the tools with
``--bootstrap-controller`` ask any controller for the active one, and connect to it.
"""

from __future__ import annotations

from typing import Any

from tidelog.cli.admin_session import AdminSession
from tidelog.cli.broker_connection import Session, client_settings
from tidelog.cli.connection_options import target, target_options
from tidelog.cli.refusal import check
from tidelog.client.routing import CONTROLLERS
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

__all__ = ["CONTROLLERS", "ControllerSession", "Session", "session", "target", "target_options"]


class ControllerSession(Session):
    """A session with the active controller."""

    def __init__(self, bootstrap: str, command_config: str | None = None) -> None:
        """CannotConnect when no controller answers; CommandFailed when brokers listen there, or no controller is active."""
        super().__init__(client_settings(bootstrap, command_config, "adminclient-1"), controllers=True)
        self.cluster: Any = self.ask(DescribeClusterRequest(endpoint_type=CONTROLLERS))
        check(self.cluster.error_code, self.cluster.error_message)


def session(bootstrap: str, controllers: bool, command_config: str | None) -> Session:
    """Opens a session; errors as in the two constructors."""
    return ControllerSession(bootstrap, command_config) if controllers else AdminSession(bootstrap, command_config)
