"""The bounds that a listener has for its own connections (KIP-402, KIP-612).

``listener.name.<listener>.max.connections`` and ``listener.name.<listener>.max.connection.creation.rate`` count the connections
of one listener, the bare options those of all. Both hold; where a listener has no bound of its own, only the bare options do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from tidelog.config.options import INT_MAX

_PREFIX: Final = "listener.name."
_CONNECTIONS: Final = "max.connections"
_RATE: Final = "max.connection.creation.rate"
OPTIONS: Final = (_CONNECTIONS, _RATE)
_SUFFIXES: Final = tuple(f".{option}" for option in OPTIONS)


class OwnBounds(NamedTuple):
    """The bounds of one listener; the greatest number where it has none."""

    connections: int = INT_MAX
    creation_rate: int = INT_MAX
    """Connections a second."""


def own_bounds(listener: str, layers: Iterable[Mapping[str, str]]) -> OwnBounds:
    """The bounds of a listener by the settings in ``layers``, of which the first counts that has the setting. They have passed
    ``bounds_problems``."""
    given = tuple(layers)
    found = (
        next((int(layer[name]) for layer in given if name in layer), INT_MAX)
        for name in (f"{_PREFIX}{listener.lower()}.{option}" for option in OPTIONS)
    )
    return OwnBounds(*found)


def bounds_problems(settings: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the bounds of listeners among ``settings``. As in Kafka, a bound is at least 1."""
    for name, text in settings.items():
        if name.startswith(_PREFIX) and name.endswith(_SUFFIXES):
            digits = text.strip().removeprefix("+")
            # Of ten digits at most, because Python reads no longer number than it is allowed to.
            if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10 and 1 <= int(digits) <= INT_MAX):
                yield f"{name} is {text!r}, but must be a whole number from 1 to {INT_MAX}."
