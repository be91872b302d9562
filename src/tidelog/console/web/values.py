"""The parameters and bodies of routes: declared with their types and bounds, refused when they are anything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.console.web.problems import Problem

MAX_LONG: Final = (1 << 63) - 1
MAX_NAME: Final = 1000
MAX_TEXT: Final = 2_000_000
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}")

Parse = Callable[[Any], Any]
"""Returns the typed value. ValueError says what is wrong."""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter. ``many``: may be repeated, at most ``most`` times. ``required``: it has no default."""

    parse: Parse
    default: Any = None
    many: bool = False
    required: bool = False
    most: int = 1


def number(low: int, high: int = MAX_LONG) -> Parse:
    """A whole number, as text or as JSON."""

    def parse(found: Any) -> int:
        if isinstance(found, int) and not isinstance(found, bool):
            value = found
        elif isinstance(found, str) and _DIGITS.fullmatch(found):
            value = int(found)
        else:
            raise ValueError("it must be a whole number")
        if not low <= value <= high:
            raise ValueError(f"it must be from {low} to {high}")
        return value

    return parse


def text(longest: int = MAX_NAME, *, least: int = 0) -> Parse:
    """A text of bounded length."""

    def parse(found: Any) -> str:
        if not isinstance(found, str):
            raise ValueError("it must be a text")
        if not found.isascii() and any("\ud800" <= letter <= "\udfff" for letter in found):
            raise ValueError("half a surrogate is no Unicode")
        if not least <= len(found) <= longest:
            raise ValueError(f"it must have {least} to {longest} characters")
        return found

    return parse


def one_of(allowed: Iterable[str]) -> Parse:
    known = tuple(allowed)

    def parse(found: Any) -> str:
        if not isinstance(found, str) or found not in known:
            raise ValueError(f"it must be one of {', '.join(known)}")
        return found

    return parse


def flag(found: Any) -> bool:
    """``0`` and ``1``, or a JSON boolean."""
    if isinstance(found, bool):
        return found
    if found in ("0", "1", "false", "true"):
        return found in ("1", "true")
    raise ValueError("it must be true or false")


def topic_name(found: Any) -> str:
    """A name that a topic may have."""
    if not isinstance(found, str) or not TOPIC.fullmatch(found) or found in (".", ".."):
        raise ValueError("a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, dot, underscore and minus")
    return found


def optional(parse: Parse) -> Parse:
    """Or null."""
    return lambda found: None if found is None else parse(found)


def listed(parse: Parse, most: int, *, least: int = 0) -> Parse:
    """A JSON array of these."""

    def parse_all(found: Any) -> list[Any]:
        if not isinstance(found, list) or not least <= len(found) <= most:
            raise ValueError(f"it must be a list of {least} to {most}")
        return [parse(each) for each in found]

    return parse_all


def mapping(parse_name: Parse, parse_value: Parse, most: int) -> Parse:
    """A JSON object with names of one kind and values of one kind."""

    def parse_all(found: Any) -> dict[Any, Any]:
        if not isinstance(found, dict) or len(found) > most:
            raise ValueError(f"it must be an object of at most {most} names")
        return {parse_name(name): parse_value(value) for name, value in found.items()}

    return parse_all


def fields(**known: Param) -> Parse:
    """A JSON object with exactly these names; those with a default may be absent."""

    def parse_all(found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise ValueError("it must be an object")
        return parsed(found, known)

    return parse_all


def parsed(given: Mapping[str, Any], known: Mapping[str, Param]) -> dict[str, Any]:
    """The typed values of a JSON object. ValueError names the field."""
    for name in given:
        if name not in known:
            raise ValueError(f"{name[:50]!r} is unknown; there are {', '.join(known) or 'none'}")
    found = {}
    for name, param in known.items():
        if name not in given:
            if param.required:
                raise ValueError(f"{name} is missing")
            found[name] = param.default
            continue
        try:
            found[name] = param.parse(given[name])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found


def query_values(given: Iterable[tuple[str, str]], known: Mapping[str, Param]) -> dict[str, Any]:
    """The typed values of a query string. Problem (400) names the parameter."""
    by_name: dict[str, list[str]] = {}
    for name, value in given:
        by_name.setdefault(name, []).append(value)
    single: dict[str, Any] = {}
    for name, values in by_name.items():
        param = known.get(name)
        if param is not None and param.many:
            if len(values) > param.most:
                raise Problem(400, f"{name}: at most {param.most} are allowed")
            single[name] = values
        elif len(values) > 1:
            raise Problem(400, f"{name[:50]!r} is given more than once")
        else:
            single[name] = values[0]
    each = {
        name: Param(_each(param.parse), param.default or [], required=param.required) if param.many else param
        for name, param in known.items()
    }
    try:
        return parsed(single, each)
    except ValueError as error:
        raise Problem(400, str(error)) from None


def _each(parse: Parse) -> Parse:
    return lambda found: [parse(each) for each in found]
