"""A filter's tree, checked for types as far as they are known without a record.

``filter``: ``test`` joined by ``and``, ``or``, ``not`` and parentheses. ``test``: a field, an operator and a literal;
``has(path)``; a text alone. ``docs/guide/console.md`` has the whole language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tidelog.console.filters.tokens import FilterError, Kind, Token, tokens

MAX_DEPTH: Final = 32
MAX_LISTED: Final = 100
TEXT_OPERATORS: Final = frozenset({"contains", "startswith", "endswith", "matches"})
COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
PAYLOADS: Final = frozenset({"key", "value"})
NUMBERS: Final = frozenset({"partition", "offset"})
FIELDS: Final = 'key, value, header["name"], partition, offset, timestamp, size(key) or size(value)'

Literal = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Path:
    """A field. ``root``: key, value, header, partition, offset, timestamp, or size of one of the first two. ``steps``: names and
    indexes inside of JSON; of a header the first step is its name."""

    root: str
    steps: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Compare:
    """``path operator literal``; ``ignore_case`` for operators on texts. ``in`` has a tuple."""

    path: Path
    operator: str
    literal: Literal | tuple[Literal, ...]
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Has:
    """Whether the path is there, null included."""

    path: Path


@dataclass(frozen=True, slots=True)
class Anywhere:
    """Whether the key or the value contains the text."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    of: Node


@dataclass(frozen=True, slots=True)
class Both:
    """All of them."""

    of: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of them."""

    of: tuple[Node, ...]


Node = Compare | Has | Anywhere | Not | Both | Either


def parse(text: str, now_ms: int) -> Node:
    """The tree. ``now_ms``: what ``now`` is in the filter. FilterError."""
    parser = _Parser(tokens(text), now_ms)
    found = parser.either(0)
    parser.end()
    return found


class _Parser:
    def __init__(self, found: list[Token], now_ms: int) -> None:
        self._tokens = found
        self._position = 0
        self._now_ms = now_ms

    # -- words ---------------------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _is(self, kind: Kind, value: str) -> bool:
        return self._next.kind is kind and self._next.value == value

    def _expect(self, mark: str) -> None:
        if not self._is(Kind.MARK, mark):
            raise FilterError(f"here should be {mark!r}, not {self._next.shown}", self._next.at)
        self._take()

    def end(self) -> None:
        """FilterError unless everything was read."""
        if self._next.kind is not Kind.END:
            raise FilterError(f"{self._next.shown} is one word too many; join tests with and, or", self._next.at)

    # -- tests ---------------------------------------------------------------------------------------------------------------

    def either(self, depth: int) -> Node:
        """Tests joined by ``or``."""
        return self._joined("or", lambda: self._joined("and", lambda: self._negated(depth + 1), Both), Either)

    def _joined(self, word: str, part: Callable[[], Node], kind: type[Both] | type[Either]) -> Node:
        parts = [part()]
        while self._is(Kind.NAME, word):
            self._take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _negated(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise FilterError(f"more than {MAX_DEPTH} levels of parentheses and not", self._next.at)
        if self._is(Kind.NAME, "not"):
            self._take()
            return Not(self._negated(depth + 1))
        if self._is(Kind.MARK, "("):
            self._take()
            inside = self.either(depth)
            self._expect(")")
            return inside
        return self._test()

    def _test(self) -> Node:
        first = self._next
        if first.kind is Kind.TEXT:
            self._take()
            return Anywhere(str(first.value))
        if self._is(Kind.NAME, "has"):
            self._take()
            self._expect("(")
            path = self._path()
            self._expect(")")
            if path.root not in PAYLOADS | {"header"} or not path.steps:
                raise FilterError('has() takes a path inside of key or value, or header["name"]', first.at)
            return Has(path)
        path = self._path()
        return self._comparison(path)

    def _path(self) -> Path:
        token = self._take()
        if token.kind is not Kind.NAME:
            raise FilterError(f"here should be a field ({FIELDS}), not {token.shown}", token.at)
        root = str(token.value)
        if root == "size":
            self._expect("(")
            part = self._take()
            if part.value not in PAYLOADS or part.kind is not Kind.NAME:
                raise FilterError("size() takes key or value", part.at)
            self._expect(")")
            return Path(f"size({part.value})")
        if root in NUMBERS or root == "timestamp":
            return Path(root)
        if root not in PAYLOADS and root != "header":
            raise FilterError(f"there is no field {root}; there are {FIELDS}", token.at)
        steps = self._steps()
        if root == "header" and (not steps or not isinstance(steps[0], str)):
            raise FilterError('a header is named: header["trace"]', token.at)
        return Path(root, steps)

    def _steps(self) -> tuple[str | int, ...]:
        steps: list[str | int] = []
        while self._is(Kind.MARK, ".") or self._is(Kind.MARK, "["):
            if self._take().value == ".":
                name = self._take()
                if name.kind is not Kind.NAME:
                    raise FilterError('behind a dot comes a name; others are written ["like this"]', name.at)
                steps.append(str(name.value))
                continue
            index = self._take()
            whole = index.kind is Kind.NUMBER and isinstance(index.value, int) and index.value >= 0
            if index.kind is not Kind.TEXT and not whole:
                raise FilterError('in brackets stands a text or a number: ["name"], [0]', index.at)
            steps.append(int(index.value) if whole else str(index.value))
            self._expect("]")
        return tuple(steps)

    def _comparison(self, path: Path) -> Node:
        token = self._take()
        operator = str(token.value)
        if token.kind not in (Kind.MARK, Kind.NAME) or operator not in COMPARISONS | TEXT_OPERATORS | {"in"}:
            raise FilterError(
                f"here should be an operator (==, !=, <, <=, >, >=, contains, startswith, endswith, matches, in), "
                f"not {token.shown}",
                token.at,
            )
        ignore_case = False
        if operator in TEXT_OPERATORS and self._is(Kind.NAME, "i"):
            self._take()
            ignore_case = True
        at = self._next.at
        if operator == "in":
            return self._checked(Compare(path, operator, self._list(path)), at)
        return self._checked(Compare(path, operator, self._literal(path), ignore_case), at)

    # -- literals ------------------------------------------------------------------------------------------------------------

    def _list(self, path: Path) -> tuple[Literal, ...]:
        begin = self._next.at
        self._expect("[")
        found = [self._literal(path)]
        while self._is(Kind.MARK, ","):
            self._take()
            found.append(self._literal(path))
        self._expect("]")
        if len(found) > MAX_LISTED:
            raise FilterError(f"a list has at most {MAX_LISTED} values", begin)
        return tuple(found)

    def _literal(self, path: Path) -> Literal:
        token = self._take()
        if token.kind is Kind.NUMBER:
            return token.value
        if token.kind is Kind.TEXT:
            return _instant_ms(str(token.value), token.at) if path.root == "timestamp" else str(token.value)
        if token.kind is Kind.NAME and token.value in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[str(token.value)]
        if token.kind is Kind.NAME and token.value == "now":
            return self._now(path, token.at)
        raise FilterError(f"here should be a text, a number, true, false or null, not {token.shown}", token.at)

    def _now(self, path: Path, at: int) -> int:
        if path.root != "timestamp":
            raise FilterError("now is for timestamp", at)
        if not (self._is(Kind.MARK, "-") or self._is(Kind.MARK, "+")):
            return self._now_ms
        sign = 1 if self._take().value == "+" else -1
        span = self._take()
        if span.kind is not Kind.DURATION:
            raise FilterError("a duration is a number with a unit: 500ms, 30s, 15m, 2h, 7d", span.at)
        return self._now_ms + sign * int(span.value)

    def _checked(self, test: Compare, at: int) -> Compare:
        """FilterError where the field can never have such a value."""
        literals = test.literal if isinstance(test.literal, tuple) else (test.literal,)
        numeric = test.path.root not in PAYLOADS and test.path.root != "header"
        if test.operator in TEXT_OPERATORS:
            if numeric:
                raise FilterError(f"{test.path.root} is a number: {test.operator} is for texts", at)
            if not isinstance(test.literal, str):
                raise FilterError(f"{test.operator} takes a text", at)
        if numeric and not all(isinstance(each, int | float) and not isinstance(each, bool) for each in literals):
            raise FilterError(f"{test.path.root} is a number", at)
        if test.operator in ("<", "<=", ">", ">=") and (isinstance(test.literal, bool) or test.literal is None):
            raise FilterError(f"{test.operator} takes a number or a text", at)
        return test


def _instant_ms(text: str, at: int) -> int:
    """An ISO 8601 date and time; UTC without a zone."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise FilterError("a time is written as 2026-11-28T06:00:00Z", at) from None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)
