"""Config providers: ``${provider:path:key}`` in a value is replaced by what a file or the environment says (KIP-297, KIP-421).

``config.providers`` names the providers, ``config.providers.NAME.class`` is one of Apache Kafka's classes, which are known here
by their names, and ``config.providers.NAME.param.*`` limits what it may read. Only files and flags of this machine are resolved,
never a setting that comes over the wire (CVE-2024-31141). Every value is resolved once: what a provider returns stands as it is.

Two things are stricter than in Apache Kafka, where they leave the reference itself as the value: a key that does not exist, and
a path or a variable that is not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from tidelog.config.options import HIDDEN
from tidelog.config.properties import parse
from tidelog.model.errors import ConfigError

PROVIDERS: Final = "config.providers"
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
FILE, DIRECTORY, ENVIRONMENT = "FileConfigProvider", "DirectoryConfigProvider", "EnvVarConfigProvider"
_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_USUAL_NAMES: Final = frozenset({"file", "dir", "directory", "env"})


class Sources(Protocol):
    """The files and the environment of this machine."""

    def is_absolute(self, path: str) -> bool:
        """Whether a path begins at a root."""

    def is_within(self, path: str, folders: tuple[str, ...]) -> bool:
        """Whether a path, without ``..``, is one of ``folders`` or below one; links are not followed."""

    def text(self, path: str) -> str:
        """The content of a file. OSError; UnicodeDecodeError."""

    def variable(self, name: str) -> str | None:
        """An environment variable."""


class Resolved:
    """Settings whose references are replaced. Values stay out of ``repr``."""

    __slots__ = ("provided", "settings")

    def __init__(self, settings: dict[str, str], provided: frozenset[str]) -> None:
        self.settings = settings
        self.provided = provided
        """The names of the settings that hold what a provider returned."""


class _Provider(NamedTuple):
    name: str
    kind: str
    allowed: tuple[str, ...] | None
    """Files and folders that it may read; None: all."""
    pattern: re.Pattern[str] | None
    """Environment variables that it may read; None: all."""


class _Missing(Exception):
    """A reference that cannot be resolved; the text says why, without a value."""


def resolve(given: Mapping[str, str], sources: Sources) -> Resolved:
    """The settings with every reference to one of their providers replaced; a reference to another name is no reference.

    ConfigError names the setting and the reference, never a value. Blocks.
    """
    providers = {name: _provider(name, given, sources) for name in _names(given)}
    if not providers:
        return Resolved(dict(given), frozenset())
    settings, provided = {}, set()
    files: dict[str, dict[str, str]] = {}

    def value(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        return match[0] if provider is None else _value(provider, match[3] or "", match[4], sources, files)

    for name, text in given.items():
        settings[name] = text
        if "${" not in text or _configures(name):
            continue
        try:
            settings[name] = _REFERENCE.sub(value, text)
        except _Missing as problem:
            raise ConfigError(f"{name}: {problem}.") from None
        if any(match[1] in providers for match in _REFERENCE.finditer(text)):
            provided.add(name)
    return Resolved(settings, frozenset(provided))


def without_providers(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings without those of the providers, which no client knows."""
    return {name: text for name, text in settings.items() if not _configures(name)}


def unresolved(given: Mapping[str, str]) -> list[str]:
    """Warnings about values that look like references, although ``config.providers`` does not name their provider."""
    listed = set(_names(given))
    found = []
    for name, text in given.items():
        for match in _REFERENCE.finditer(text) if "${" in text else ():
            if match[1] in _USUAL_NAMES - listed:
                found.append(f"{name} holds ${{{match[1]}:...}}, which is not replaced: {PROVIDERS} does not name {match[1]}.")
    return found


def without_values(text: str, settings: Mapping[str, str], provided: Iterable[str]) -> str:
    """A message without the values that providers returned, or one of several in a list."""
    values = {part for name in provided for part in (settings[name], *re.split(r"[,;\s]+", settings[name])) if part}
    for value in sorted(values, key=len, reverse=True):
        text = re.sub(rf"(?<!\w)(?<!\w\.){re.escape(value)}(?!\w|\.\w)", lambda _: HIDDEN, text)
    return text


def _configures(name: str) -> bool:
    return name == PROVIDERS or name.startswith(f"{PROVIDERS}.")


def _names(given: Mapping[str, str]) -> list[str]:
    return [name.strip() for name in given.get(PROVIDERS, "").split(",") if name.strip()]


def _provider(name: str, given: Mapping[str, str], sources: Sources) -> _Provider:
    """ConfigError for a class that does not exist here, or a parameter that cannot be read."""
    option = f"{PROVIDERS}.{name}"
    java_class = given.get(f"{option}.class", "").strip()
    kind = java_class.removeprefix(_PACKAGE)
    limits = {FILE: "allowed.paths", DIRECTORY: "allowed.paths", ENVIRONMENT: "allowlist.pattern"}
    if kind not in limits:
        known = ", ".join(f"{_PACKAGE}{each}" for each in limits)
        raise ConfigError(f"{option}.class is {java_class or 'not set'}, but must be one of {known}.")
    parameters = {each.removeprefix(f"{option}.param."): each for each in given if each.startswith(f"{option}.param.")}
    for parameter, full in parameters.items():
        if parameter != limits[kind]:
            # A limit that is misspelled would be no limit.
            raise ConfigError(f"{full} is not a parameter of {kind}, which has {limits[kind]}.")
    limit = given[parameters[limits[kind]]].strip() if parameters else ""
    if kind == ENVIRONMENT:
        try:
            return _Provider(name, kind, None, re.compile(limit) if limit else None)
        except re.error as problem:
            raise ConfigError(f"{option}.param.{limits[kind]} is no regular expression: {problem}.") from None
    paths = tuple(path.strip() for path in limit.split(",")) if limit else None
    for path in paths or ():
        if not sources.is_absolute(path):
            raise ConfigError(f"{option}.param.{limits[kind]} holds {path!r}, which is not absolute.")
    return _Provider(name, kind, paths, None)


def _value(provider: _Provider, path: str, key: str, sources: Sources, files: dict[str, dict[str, str]]) -> str:
    """What a reference stands for. ``files``: what was read before."""
    where = f"{provider.name}:{path}:{key}" if path else f"{provider.name}:{key}"
    try:
        return _KINDS[provider.kind](provider, path, key, sources, files)
    except _Missing as problem:
        raise _Missing(f"${{{where}}} cannot be resolved: {problem}") from None


def _from_file(provider: _Provider, path: str, key: str, sources: Sources, files: dict[str, dict[str, str]]) -> str:
    if path not in files:
        text = _text(provider, path, sources)
        try:
            files[path] = parse(text)
        except ConfigError:
            # Its text quotes the line.
            raise _Missing(f"{path} is no file of key=value lines") from None
    if key not in files[path]:
        raise _Missing(f"{path} has no key {key}")
    return files[path][key]


def _from_directory(provider: _Provider, path: str, key: str, sources: Sources, files: dict[str, dict[str, str]]) -> str:
    if not path or not key or "/" in key or "\\" in key or key in (".", ".."):
        raise _Missing("it names no folder and a file in it")
    return _text(provider, f"{path.rstrip('/')}/{key}", sources)


def _from_environment(provider: _Provider, path: str, key: str, sources: Sources, files: dict[str, dict[str, str]]) -> str:
    if path:
        raise _Missing("an environment variable has no path")
    if provider.pattern is not None and not provider.pattern.fullmatch(key):
        raise _Missing("allowlist.pattern does not allow it")
    found = sources.variable(key)
    if found is None:
        raise _Missing("the environment does not have it")
    return found


_KINDS: Final[dict[str, Callable[[_Provider, str, str, Sources, dict[str, dict[str, str]]], str]]] = {
    FILE: _from_file,
    DIRECTORY: _from_directory,
    ENVIRONMENT: _from_environment,
}


def _text(provider: _Provider, path: str, sources: Sources) -> str:
    if not path:
        raise _Missing("it names no file")
    if provider.allowed is not None and not sources.is_within(path, provider.allowed):
        raise _Missing(f"allowed.paths does not allow {path}")
    try:
        return sources.text(path)
    except UnicodeDecodeError:
        raise _Missing(f"{path} is not text in UTF-8") from None
    except OSError as problem:
        raise _Missing(f"{path} cannot be read: {problem.strerror or 'an error of the system'}") from None
