"""Configs and modes of subjects, contexts and all: read, set and deleted. Functions of the state that return an ``Outcome``.

Setting a config changes the fields that the request has: null clears one, those left out stay. RegistryError.
"""

from __future__ import annotations

from typing import Any

from tidelog.registry import contracts, errors
from tidelog.registry.levels import (
    DEFAULT_LEVEL,
    IMPORT,
    LEVELS,
    MODES,
    POLICIES,
    READ_WRITE,
    check_writable,
    config_of,
    mode_of,
)
from tidelog.registry.model import GLOBAL, GLOBAL_CONTEXT, context_of, name_of
from tidelog.registry.outcome import Outcome
from tidelog.registry.records import ConfigEntry, ModeEntry
from tidelog.registry.state import State

_FLAGS = ("normalize", "validateNewSchemas", "validateRules")
_TEXTS = ("alias", "compatibilityGroup")
_METADATA = ("defaultMetadata", "overrideMetadata")
_RULE_SETS = ("defaultRuleSet", "overrideRuleSet")
_UNSUPPORTED = ("validateFields", "aliasForDeks")
CONFIG_FIELDS = frozenset(
    {"compatibility", "compatibilityPolicy", *_FLAGS, *_TEXTS, *_METADATA, *_RULE_SETS, *_UNSUPPORTED, "compatibilityLevel"}
)


def get_config(state: State, subject: str, *, default_to_global: bool, default_level: str = DEFAULT_LEVEL) -> Outcome:
    """The own config (40408 without), or with ``default_to_global`` what holds. The global one always holds."""
    if subject == GLOBAL or default_to_global:
        return Outcome(config_of(state, subject, default_level).own)
    if subject not in state.configs:
        raise errors.no_own_config(subject)
    return Outcome(state.configs[subject])


def put_config(state: State, subject: str, body: dict[str, Any]) -> Outcome:
    """The answer is the request. 42203 for a level that there is not, 42210 for rules, 400 for what is not served."""
    check_writable(state, subject, setting=True)
    refused = [name for name in _UNSUPPORTED if body.get(name)]
    if refused:
        raise errors.bad_request(f"this registry does not act on {', '.join(refused)} in a config")
    config = dict(state.configs.get(subject, {}))
    for name, value in body.items():
        key = "compatibilityLevel" if name == "compatibility" else name
        if name in _UNSUPPORTED:
            continue
        if value is None:
            config.pop(key, None)
        else:
            config[key] = _checked(name, value)
    return Outcome({name: value for name, value in body.items() if value is not None}, (ConfigEntry(subject, config),))


def _checked(name: str, value: Any) -> Any:
    if name in ("compatibility", "compatibilityLevel", "compatibilityPolicy"):
        allowed = POLICIES if name == "compatibilityPolicy" else LEVELS
        if not isinstance(value, str) or value.upper() not in allowed:
            raise errors.invalid_level(value, allowed)
        return value.upper()
    if name in _FLAGS and not isinstance(value, bool):
        raise errors.bad_request(f"{name} is true or false")
    if name in _TEXTS and (not isinstance(value, str) or not value):
        raise errors.bad_request(f"{name} is a text")
    if name in _METADATA:
        contracts.metadata_text(value)
    if name in _RULE_SETS:
        contracts.rule_set_text(value)
    return value


def delete_config(state: State, subject: str, default_level: str = DEFAULT_LEVEL) -> Outcome:
    """The answer is the former config. 40401 for a subject without one."""
    check_writable(state, subject, setting=True)
    if subject not in state.configs:
        if subject != GLOBAL:
            raise errors.subject_not_found(subject)
        return Outcome({"compatibilityLevel": default_level})
    return Outcome(state.configs[subject], (ConfigEntry(subject, None),))


def get_mode(state: State, subject: str, *, default_to_global: bool) -> Outcome:
    """The own mode (40409 without), or with ``default_to_global`` the one that holds."""
    if subject == GLOBAL or default_to_global:
        return Outcome({"mode": mode_of(state, subject)})
    if subject not in state.modes:
        raise errors.no_own_mode(subject)
    return Outcome({"mode": state.modes[subject]})


def put_mode(state: State, subject: str, mode: Any, *, force: bool) -> Outcome:
    """42204 for a mode that there is not; 42205 for IMPORT over live subjects without ``force``."""
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise errors.invalid_mode(mode, MODES)
    mode = mode.upper()
    if mode == IMPORT and mode_of(state, subject) != IMPORT and not force and _has_subjects(state, subject):
        raise errors.not_permitted("Mode IMPORT needs a registry, context or subject without schemas, or force=true.")
    return Outcome({"mode": mode}, (ModeEntry(subject, mode),))


def delete_mode(state: State, subject: str, *, recursive: bool) -> Outcome:
    """The answer is the former mode; ``recursive``: those of the context's subjects go too. 40401 without one."""
    inner = [each for each in state.modes if recursive and _inside(each, subject) and each != subject]
    if subject not in state.modes and subject != GLOBAL and not inner:
        raise errors.subject_not_found(subject)
    former = state.modes.get(subject, READ_WRITE)
    own = [subject] if subject in state.modes else []
    return Outcome({"mode": former}, tuple(ModeEntry(each, None) for each in [*own, *sorted(inner)]))


def _inside(subject: str, outer: str) -> bool:
    """Whether a subject is ``outer``, or in the context that ``outer`` stands for."""
    if outer == GLOBAL_CONTEXT:
        return True
    return subject == outer or (not name_of(outer) and context_of(subject) == context_of(outer))


def _has_subjects(state: State, outer: str) -> bool:
    return any(_inside(subject, outer) and state.alive(subject) for subject in state.subjects())
