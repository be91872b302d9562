"""Where a tool of administration connects: to brokers, or past them to the active controller (KIP-919).

Brokers pass what only the controller can decide on to it. Without brokers, or where they are the trouble, the tools that take
``--bootstrap-controller`` ask any controller who is active, and talk to that one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import click

from tidelog.cli import refusal
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.broker_connection import BrokerConnection
from tidelog.cli.refusal import CommandFailed, check
from tidelog.config.listeners import address_text
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.structure import Message

F = TypeVar("F", bound=Callable[..., Any])
CONTROLLERS = 2
"""The endpoint type of DescribeCluster that asks for controllers."""


class Session(Protocol):
    """What both kinds of sessions have."""

    timeout_ms: int

    def ask(self, request: Message) -> Any:
        """The answer of a broker, or of the active controller."""

    def version_of(self, api_key: int) -> int:
        """The version at which requests of this API go out."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class ControllerSession:
    """Connected to the active controller. A context manager."""

    def __init__(self, bootstrap: str, command_config: str | None = None) -> None:
        """CannotConnect when no controller answers; CommandFailed when brokers listen there, or nobody is active."""
        with BrokerConnection(bootstrap, command_config, "adminclient-1") as first:
            self.cluster = first.ask(DescribeClusterRequest(endpoint_type=CONTROLLERS))
        if self.cluster.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise CommandFailed(f"{bootstrap} is a listener of a broker: give it as --bootstrap-server.")
        check(self.cluster.error_code, self.cluster.error_message)
        active = [each for each in self.cluster.brokers if each.broker_id == self.cluster.controller_id]
        if not active:
            raise CommandFailed(f"The controllers at {bootstrap} have no leader at present. Try again when a majority is up.")
        self._connection = BrokerConnection(address_text(active[0].host, active[0].port), command_config, "adminclient-1")
        self.timeout_ms = self._connection.timeout_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.__exit__(kind, error, trace)

    def ask(self, request: Message) -> Any:
        """The answer of the active controller."""
        return self._connection.ask(request)

    def version_of(self, api_key: int) -> int:
        """The version at which requests of this API go out."""
        return self._connection.version_of(api_key)


def target_options(command: F) -> F:
    """The flags of tools that can go to either."""
    for option in (
        click.option(
            "--command-config", "-c", type=click.Path(exists=True, dir_okay=False), help="A file with settings of the client."
        ),
        click.option("--bootstrap-controller", "-C", metavar="HOST:PORT,...", help="The controllers to connect to instead."),
        click.option("--bootstrap-server", "-b", metavar="HOST:PORT,...", help="The brokers to connect to first."),
    ):
        command = option(command)
    return command


def target(bootstrap_server: str | None, bootstrap_controller: str | None) -> tuple[str, bool]:
    """The address, and whether it is one of controllers. A usage error unless exactly one was given."""
    if bootstrap_server and bootstrap_controller:
        refusal.usage("Only one of --bootstrap-server and --bootstrap-controller can be given")
    return refusal.required(bootstrap_server or bootstrap_controller), bool(bootstrap_controller)


def session(bootstrap: str, controllers: bool, command_config: str | None) -> Session:
    """Connected. As the constructors of the two kinds."""
    return ControllerSession(bootstrap, command_config) if controllers else AdminSession(bootstrap, command_config)
