"""What a user wrote, read key by key: every mistake is reported with its line, the wrong key, and the closest right one.

A ``Section`` is one mapping and its place. Lines are known for YAML only; mistakes in Python have a path.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from tidelog.model.errors import ConfigError

Path = tuple[str, ...]
E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")
U = TypeVar("U")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class Mistake(ConfigError):
    """One mistake. ``line``: 0 where lines are not known; ``about``: the wrong or missing key."""

    def __init__(self, text: str, line: int = 0, about: Path = ()) -> None:
        super().__init__(text)
        self.line = line
        self.about = about


class Mistakes(ConfigError):
    """Several mistakes, a line of text for each; ``found`` has them in the order of the file."""

    def __init__(self, found: Sequence[Mistake]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in found))
        self.found = tuple(found)


class Problems:
    """The mistakes so far. Reading continues after a mistake, so that a user sees all of them."""

    def __init__(self) -> None:
        self._found: list[Mistake] = []
        self._misspelt: set[Path] = set()

    def meant(self, key: Path) -> None:
        """Note that an unknown key is a misspelling of this one, so that its absence is not reported too."""
        self._misspelt.add(key)

    def add(self, error: ConfigError) -> None:
        """Note a mistake, or several."""
        self._found += (
            error.found if isinstance(error, Mistakes) else [error if isinstance(error, Mistake) else Mistake(str(error))]
        )

    def tried(self, make: Callable[[], T], default: U) -> T | U:
        """The result of ``make``, or ``default`` when it raises a ConfigError, which is noted."""
        try:
            return make()
        except ConfigError as error:
            self.add(error)
            return default

    def check(self) -> None:
        """Raise what was noted: a single Mistake as it is, several as Mistakes."""
        own = {str(mistake): mistake for mistake in self._found if mistake.about not in self._misspelt}
        found = sorted(own.values(), key=lambda mistake: mistake.line)
        if found:
            raise found[0] if len(found) == 1 else Mistakes(found)


@dataclass(frozen=True, slots=True)
class Document:
    """Plain dicts, lists and scalars. ``lines``: of each key, by path; ``origin``: the file's name, or a text in its place;
    ``written``: the text of values that are not texts, by path, where it is known: a password may be 007, a topic may be
    called no."""

    tree: Any
    origin: str
    lines: Mapping[Path, int] = field(default_factory=dict)
    written: Mapping[Path, str] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems, compare=False)

    def error(self, path: Path, problem: str, missing: str = "") -> Mistake:
        """The error for a value at ``path``; for a ``missing`` key, where it should be."""
        line = next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)
        where = self.origin if line is None else f"{self.origin}, line {line}"
        return Mistake(
            f"{where}: {'.'.join(path) + ': ' if path else ''}{problem}", line or 0, (*path, missing) if missing else path
        )

    def root(self, known: Iterable[str]) -> Section:
        """The whole document as a section with the keys ``known``."""
        return Section(self, (), self.tree, tuple(known))


class Section:
    """One mapping. Made with the keys that it may have; unknown ones are noted with the document."""

    def __init__(self, document: Document, path: Path, found: Any, known: tuple[str, ...] | None) -> None:
        self.path = path
        self._document = document
        if not isinstance(found, dict):
            raise document.error(path, f"here must be keys with values, and there is {_said(found)}.")
        self._found: dict[str, Any] = {str(key): value for key, value in found.items()}
        for key in self._found if known is not None else ():
            if key not in (known or ()):
                document.problems.add(self.error(key, unknown_key(key, known or ())))
                document.problems.meant((*path, *closest(key, known or ())))

    def tried(self, make: Callable[[], T], default: U) -> T | U:
        return self._document.problems.tried(make, default)

    def error(self, key: str, problem: str) -> Mistake:
        """The error for a key of this section."""
        return self._document.error((*self.path, key), problem)

    def __contains__(self, key: str) -> bool:
        return self._found.get(key) is not None

    def get(self, key: str) -> Any:
        """The value as it was written; None for a missing key."""
        return self._found.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """A text. Numbers and flags are taken as they were written. Required unless there is a default."""
        value = self._found.get(key)
        if value is None:
            if default is None:
                raise self._document.error(self.path, f"{key} is missing.", key)
            return default
        if isinstance(value, dict | list):
            raise self.error(key, f"must be a text, and is {_said(value)}.")
        return str(value).lower() if isinstance(value, bool) else self._written(value, key)

    def choice(self, key: str, default: E) -> E:
        """One of the words of an enumeration."""
        kind = type(default)
        text = self.text(key, default.value)
        if text not in list(kind):
            raise self.error(key, f"{text!r} is none of {', '.join(kind)}.{near(text, list(kind))}")
        return kind(text)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._found.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, and is {_said(value)}.")
        return value

    def number(self, key: str, lowest: int = 1) -> int | None:
        """A whole number, or None."""
        value = self._found.get(key)
        if value is not None and (type(value) is not int or value < lowest):
            raise self.error(key, f"must be a whole number from {lowest} on, and is {_said(value)}.")
        return value

    def duration_ms(self, key: str, default: int) -> int:
        """``500ms``, ``10s``, ``5m``, ``1h``, ``1d``."""
        text = self.text(key, f"{default}ms")
        found = re.fullmatch(r"(\d+)\s*([a-z]+)", text.strip())
        if found is None or found[2] not in _UNITS or int(found[1]) == 0:
            raise self.error(key, f"{text!r} must be a number with a unit ({', '.join(_UNITS)}), like 10s.")
        return int(found[1]) * _UNITS[found[2]]

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single text is a list of one."""
        value = self._found.get(key)
        if value is None:
            return ()
        items = value if isinstance(value, list | tuple) else [value]
        if not items or any(isinstance(item, dict | list) or item in (None, "") for item in items):
            raise self.error(key, f"must be a list of texts, and is {_said(value)}.")
        if not isinstance(value, list | tuple):
            return (self._written(value, key),)
        return tuple(self._written(item, key, str(at)) for at, item in enumerate(items))

    def _written(self, value: Any, *path: str) -> str:
        return self._document.written.get((*self.path, *path), str(value))

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """Settings under names that the pipeline does not define, such as a client's; sorted."""
        if key not in self:
            return ()
        inner = Section(self._document, (*self.path, key), self._found[key], None)
        return tuple(sorted((name, inner.text(name)) for name in inner._found))

    def section(self, key: str, known: Iterable[str]) -> Section | None:
        """A section below this one."""
        if key not in self:
            return None
        return Section(self._document, (*self.path, key), self._found[key], tuple(known))

    def named(self, key: str, known: Iterable[str]) -> list[tuple[str, Section]]:
        """Sections by name, in their order. Names must be SQL names."""
        if key not in self:
            return []
        outer = Section(self._document, (*self.path, key), self._found[key], None)
        for name in outer._found:
            if not NAME.fullmatch(name):
                wrong = outer.error(name, "a name has letters, digits and _, and begins with no digit: SQL calls it by that.")
                self._document.problems.add(wrong)
        allowed = tuple(known)

        def below(name: str) -> Section:
            return Section(self._document, (*outer.path, name), outer._found[name], allowed)

        made = [(name, self.tried(partial(below, name), None)) for name in outer._found]
        return [(name, section) for name, section in made if section is not None]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """The message about an unknown key."""
    allowed = sorted(known)
    return f"this key is not known here.{near(key, allowed) or ' Known are: ' + ', '.join(allowed) + '.'}"


def near(word: str, known: Iterable[str]) -> str:
    """A question that names the closest of ``known``; empty if none is close."""
    return "".join(f" Did you mean {found}?" for found in closest(word, known))


def closest(word: str, known: Iterable[str]) -> list[str]:
    """The closest of ``known``; None if none is close."""
    return difflib.get_close_matches(word, list(known), 1, 0.5)


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else repr(value)
