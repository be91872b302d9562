"""Which config and mode hold for a subject, by the records of the subject, its context, or all.

A field of the config comes from the first of: the subject, its context (in the default context: the global config),
``:.__GLOBAL:``, the default. READONLY for ``:.__GLOBAL:``, and READONLY_OVERRIDE as the global mode, hold for everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tidelog.registry import errors
from tidelog.registry.model import DEFAULT_CONTEXT, GLOBAL, GLOBAL_CONTEXT, Schema, context_of, name_of, qualified
from tidelog.registry.state import State

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
POLICIES = ("STRICT", "LENIENT")
READ_WRITE, READ_ONLY, READ_ONLY_OVERRIDE, IMPORT, FORWARD_MODE = (
    "READWRITE",
    "READONLY",
    "READONLY_OVERRIDE",
    "IMPORT",
    "FORWARD",
)
DEFAULT_LEVEL = "BACKWARD"


@dataclass(frozen=True, slots=True)
class Config:
    """The config that holds for a subject. ``own``: the fields of the answer to GET /config with defaultToGlobal."""

    level: str
    policy: str
    group: str | None
    normalize: bool
    validate_new: bool
    validate_rules: bool
    own: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """A field that is metadata or a rule set, as JSON text."""
        return self.own.get(name)


def scopes(subject: str) -> Iterator[str]:
    """Where settings of a subject are looked up, nearest first."""
    seen = [subject]
    context = context_of(subject)
    if context != DEFAULT_CONTEXT:
        seen.append(qualified(context, "") if name_of(subject) else subject)
    else:
        seen.append(GLOBAL)
    yield from dict.fromkeys([*seen, GLOBAL_CONTEXT])


def config_of(state: State, subject: str, default_level: str = DEFAULT_LEVEL) -> Config:
    """The config that holds for a subject, a context or GLOBAL."""
    found: dict[str, Any] = {}
    for scope in scopes(subject):
        found = state.configs.get(scope, {}) | found
    level = str(found.get("compatibilityLevel") or default_level).upper()
    return Config(
        level if level in LEVELS else default_level,
        str(found.get("compatibilityPolicy") or POLICIES[0]).upper(),
        found.get("compatibilityGroup"),
        found.get("normalize") is True,
        found.get("validateNewSchemas") is not False,
        found.get("validateRules") is not False,
        found | {"compatibilityLevel": level},
    )


def mode_of(state: State, subject: str) -> str:
    """The mode that holds for a subject, a context or GLOBAL."""
    if state.modes.get(GLOBAL_CONTEXT) == READ_ONLY:
        return READ_ONLY
    if state.modes.get(GLOBAL) == READ_ONLY_OVERRIDE:
        return READ_ONLY_OVERRIDE
    for scope in scopes(subject):
        if scope in state.modes:
            return state.modes[scope]
    return READ_WRITE


def check_writable(state: State, subject: str, *, setting: bool = False) -> str:
    """The mode, if it allows changes; else 42205. ``setting``: the change is one of a config, which FORWARD allows too."""
    mode = mode_of(state, subject)
    if mode in (READ_ONLY, READ_ONLY_OVERRIDE) or (mode == FORWARD_MODE and not setting):
        raise errors.not_permitted(f"Subject '{subject}' is in mode {mode}.")
    return mode


def resolve_alias(state: State, subject: str) -> str:
    """The subject that an alias stands for; the subject itself without one."""
    alias = state.configs.get(subject, {}).get("alias")
    return qualified(context_of(subject), alias) if isinstance(alias, str) and alias else subject


def group_value(schema: Schema, group: str | None) -> str | None:
    """The value of the metadata property by which versions are grouped; None without a group."""
    if group is None:
        return None
    properties = schema.metadata_value.get("properties") or {}
    found: str | None = properties.get(group)
    return found
