"""The connection flags that all tools share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tidelog.cli import refusal

F = TypeVar("F", bound=Callable[..., Any])
BOOTSTRAP_VARIABLE = "TIDELOG_BOOTSTRAP"
FILE = click.Path(exists=True, dir_okay=False)

bootstrap_option = click.option(
    "--bootstrap-server",
    metavar="HOST:PORT,...",
    envvar=BOOTSTRAP_VARIABLE,
    help=f"The brokers to connect to first, tried in turn. Required, unless {BOOTSTRAP_VARIABLE} names them.",
)
command_config_option = click.option("--command-config", type=FILE, help="A file with settings of the client.")


def target_options(command: F, *, old: tuple[str, ...] = ()) -> F:
    """The flags of tools that can connect to brokers or to controllers. ``old``: other names of ``--command-config``."""
    for option in (
        click.option("--command-config", "-c", *old, type=FILE, help="A file with settings of the client."),
        click.option("--bootstrap-controller", "-C", metavar="HOST:PORT,...", help="The controllers to connect to instead."),
        click.option("--bootstrap-server", "-b", metavar="HOST:PORT,...", help="The brokers to connect to first, tried in turn."),
    ):
        command = option(command)
    return command


def target(bootstrap_server: str | None, bootstrap_controller: str | None) -> tuple[str, bool]:
    """The address, and whether it is a controller's. A usage error unless exactly one was given."""
    if bootstrap_server and bootstrap_controller:
        refusal.usage("Only one of --bootstrap-server and --bootstrap-controller can be given")
    given = bootstrap_server or bootstrap_controller or os.environ.get(BOOTSTRAP_VARIABLE)
    return refusal.required(given), bool(bootstrap_controller)
