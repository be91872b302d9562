"""Property files and flags as a command takes them, with the references of config providers replaced (``config.providers``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.cli.refusal import text_of
from tidelog.config.properties import parse
from tidelog.config.providers import PROVIDERS, Resolved, resolve, without_providers, without_values
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig


class ThisMachine:
    """Its files and its environment; remembers which files it has read."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def is_absolute(self, path: str) -> bool:
        return os.path.isabs(path)

    def is_within(self, path: str, folders: tuple[str, ...]) -> bool:
        normal = os.path.normpath(path)
        return any(normal == each or normal.startswith(each.rstrip(os.sep) + os.sep) for each in map(os.path.normpath, folders))

    def text(self, path: str) -> str:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        self.files.append(path)
        return text

    def variable(self, name: str) -> str | None:
        return os.environ.get(name)


def node_config(path: str) -> BrokerConfig:
    """The settings in a node's file. ConfigError when it could not start with them."""
    from tidelog.config.resolve import BrokerConfig  # the tables of all options; few commands need them

    found = resolve(parse(text_of(path)), ThisMachine())
    return BrokerConfig.from_properties(found.settings, found.provided)


def client_settings(given: Mapping[str, str]) -> Resolved:
    """The settings of a client, without those of its providers. A file that every user can read gets a warning on stderr.

    ConfigError names a reference that cannot be resolved.
    """
    if PROVIDERS not in given:
        return Resolved(dict(given), frozenset())
    from tidelog.server.secret_files import readable_by_others

    machine = ThisMachine()
    found = resolve(given, machine)
    for path in machine.files:
        if readable_by_others(path):
            print(f"WARNING: {path} holds secrets, and every user of this machine can read it: chmod o-r {path}", file=sys.stderr)
    return Resolved(without_providers(found.settings), found.provided)


def without_provided(error: ConfigError, found: Resolved) -> ConfigError:
    """The error without values that a provider returned."""
    return ConfigError(without_values(str(error), found.settings, found.provided))
