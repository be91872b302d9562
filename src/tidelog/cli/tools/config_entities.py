"""The entities of ``configs``: --entity-type with --entity-name and --entity-default, and their short forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from tidelog.cli import refusal

SHORT = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "ip": "ips",
    "client_metrics": "client-metrics",
    "group": "groups",
}
SHORT_DEFAULTS = {"client_defaults": "clients", "user_defaults": "users", "broker_defaults": "brokers", "ip_defaults": "ips"}
WITH_DEFAULT = tuple(SHORT_DEFAULTS.values())
TOGETHER = frozenset({"users", "clients"})
_ORDER = "tidelog.cli.tools.config_entities.names"


@dataclass(frozen=True, slots=True)
class Named:
    """``name``: None for all of that type, empty for the default of entities without their own settings."""

    kind: str
    name: str | None


def in_order(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Callback of --entity-name and --entity-default: several types get their names in the order of the flags."""
    names = value if isinstance(value, tuple) else ("",) * value
    context.meta.setdefault(_ORDER, []).extend(names)
    return value


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The entity flags as options of a click command; ``named`` reads them."""
    defaults = f"What holds for all, of {', '.join(sorted(WITH_DEFAULT))}."
    flags = [
        click.option("--entity-type", metavar="TYPE", multiple=True, help="Kind of settings; users and clients go together."),
        click.option("--entity-name", metavar="NAME", multiple=True, callback=in_order, help="Whose settings. [all of the type]"),
        click.option("--entity-default", count=True, callback=in_order, help=defaults),
        *(_short(flag, kind) for flag, kind in SHORT.items()),
        *(_short_default(flag, kind) for flag, kind in SHORT_DEFAULTS.items()),
    ]
    for option in reversed(flags):
        command = option(command)
    return command


def _short(flag: str, kind: str) -> Callable[..., Any]:
    value = "ID" if kind.startswith("broker") else "NAME"
    return click.option(_dashed(flag), metavar=value, help=f"Short for --entity-type {kind} --entity-name {value}.")


def _short_default(flag: str, kind: str) -> Callable[..., Any]:
    return click.option(_dashed(flag), is_flag=True, help=f"Short for --entity-type {kind} --entity-default.")


def _dashed(flag: str) -> str:
    return "--" + flag.replace("_", "-")


def named(flags: dict[str, Any], kinds: tuple[str, ...]) -> list[Named]:
    """The entities of the running command: one, or a user and a client. click.UsageError when the flags are inconsistent."""
    names: list[str] = click.get_current_context().meta[_ORDER]
    types: tuple[str, ...] = flags["entity_type"]
    short = [Named(kind, flags[flag]) for flag, kind in SHORT.items() if flags[flag] is not None]
    short += [Named(kind, "") for flag, kind in SHORT_DEFAULTS.items() if flags[flag]]
    if short and (types or names):
        refusal.usage("--entity-type, --entity-name and --entity-default do not go with their short forms")
    if len(names) > len(types) and not short:
        refusal.usage(
            "--entity-name needs an --entity-type before it" if not types else "There are more entity names than entity types"
        )
    found = short or [Named(kind, names[place] if place < len(names) else None) for place, kind in enumerate(types)]
    if not found:
        refusal.usage(f"Say whose settings with --entity-type: {', '.join(kinds)}")
    for each in found:
        if each.kind not in kinds:
            refusal.usage(f"--entity-type {each.kind} does not exist here: use {', '.join(kinds)}")
        if each.name == "" and each.kind not in WITH_DEFAULT:
            refusal.usage(f"--entity-default is there for {', '.join(WITH_DEFAULT)}, not for {each.kind}")
    twice = [kind for kind, count in Counter(each.kind for each in found).items() if count > 1]
    if twice:
        refusal.usage(f"Duplicate entity type(s) specified: {', '.join(twice)}")
    if len(found) > 1 and {each.kind for each in found} != TOGETHER:
        refusal.usage("Only 'users' and 'clients' entity types may be specified together")
    return found
