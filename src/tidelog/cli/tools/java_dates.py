"""Times in the patterns of Java's SimpleDateFormat, which Kafka's tools take: ``yyyy-MM-dd HH:mm:ss:SSS``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

_TOKENS = re.compile(r"'((?:[^']|'')*)'|([a-zA-Z])\2*|[^a-zA-Z']+")


def _year(moment: datetime, width: int) -> str:
    return f"{moment.year % 100:02}" if width == 2 else str(moment.year).zfill(width)


def _month(moment: datetime, width: int) -> str:
    return str(moment.month).zfill(width) if width < 3 else moment.strftime("%b" if width == 3 else "%B")


def _offset(moment: datetime, width: int) -> str:
    text = moment.astimezone().strftime("%z")
    return "Z" if text == "+0000" else (text[:3], text[:5], f"{text[:3]}:{text[3:5]}")[min(width, 3) - 1]


def _number(of: Callable[[datetime], int]) -> Callable[[datetime, int], str]:
    return lambda moment, width: str(of(moment)).zfill(width)


LETTERS: dict[str, Callable[[datetime, int], str]] = {
    "y": _year,
    "M": _month,
    "d": _number(lambda moment: moment.day),
    "D": _number(lambda moment: moment.timetuple().tm_yday),
    "E": lambda moment, width: moment.strftime("%a" if width < 4 else "%A"),
    "u": _number(lambda moment: moment.isoweekday()),
    "a": lambda moment, _: "AM" if moment.hour < 12 else "PM",
    "H": _number(lambda moment: moment.hour),
    "k": _number(lambda moment: moment.hour or 24),
    "K": _number(lambda moment: moment.hour % 12),
    "h": _number(lambda moment: moment.hour % 12 or 12),
    "m": _number(lambda moment: moment.minute),
    "s": _number(lambda moment: moment.second),
    "S": _number(lambda moment: moment.microsecond // 1000),
    "z": lambda moment, _: moment.astimezone().strftime("%Z"),
    "Z": lambda moment, _: moment.astimezone().strftime("%z"),
    "X": _offset,
}
"""What a run of a letter prints, by its width."""


def formatter(pattern: str) -> Callable[[datetime], str]:
    """Prints local times in this pattern. ValueError for a letter that is not known here, or a quote that is not closed."""
    parts: list[Callable[[datetime], str]] = []
    position = 0
    while position < len(pattern):
        match = _TOKENS.match(pattern, position)
        if match is None:
            raise ValueError("a quote is not closed")
        parts.append(_part(match))
        position = match.end()
    return lambda moment: "".join(part(moment) for part in parts)


def _part(match: re.Match[str]) -> Callable[[datetime], str]:
    text, quoted, letter = match[0], match[1], match[2]
    if quoted is not None:
        literal = quoted.replace("''", "'") or "'"
        return lambda _: literal
    if letter is None:
        return lambda _: text
    if letter not in LETTERS:
        raise ValueError(f"the letter {letter} is none of {' '.join(LETTERS)}")
    write, width = LETTERS[letter], len(text)
    return lambda moment: write(moment, width)
