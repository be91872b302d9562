"""Filters as functions of a record. Each test costs time linear in the record's text; patterns are RE2's, so they do, too.

A path that is not there is equal to nothing and fulfils no test but ``!=`` and ``not``. Integers compare exactly; texts compare
with texts, numbers with numbers, true and false with themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from tidelog.console.filters.parsing import Anywhere, Both, Compare, Either, Has, Literal, Node, Not, Path, parse
from tidelog.console.filters.tokens import FilterError

MAX_PARSED: Final = 1 << 20
"""Characters of the longest text whose JSON is looked into."""
_PATTERN_MEMORY: Final = 1 << 20
MAX_PROGRAM: Final = 2000
"""Instructions of a pattern: each may be looked at for each character, so that a text of 1 MB takes seconds."""


class _Missing:
    """No value at a path."""


MISSING: Final = _Missing()


class Part:
    """A key, value or header as a filter sees it: its text, and the JSON inside, both made when they are first needed."""

    __slots__ = ("_json", "_parsed", "_read", "_text", "size")

    def __init__(self, read: Callable[[], str | None], size: int) -> None:
        """``read``: makes the text, None for null. ``size``: bytes of the payload, 0 for null."""
        self._read: Callable[[], str | None] | None = read
        self._text: str | None = None
        self.size = size
        self._json: Any = MISSING
        self._parsed = False

    @property
    def text(self) -> str | None:
        """The text; None for null."""
        if self._read is not None:
            self._text, self._read = self._read(), None
        return self._text

    @property
    def json(self) -> Any:
        """The parsed value, None for null; MISSING for a text that is not JSON."""
        if not self._parsed:
            self._parsed = True
            if self.text is None:
                self._json = None
            elif len(self.text) <= MAX_PARSED:
                try:
                    self._json = json.loads(self.text)
                except (ValueError, RecursionError):
                    self._json = MISSING
        return self._json


class Subject:
    """A record as a filter sees it. ``headers``: the last one of each name."""

    __slots__ = ("headers", "key", "offset", "partition", "timestamp", "value")

    def __init__(self, partition: int, offset: int, timestamp: int, key: Part, value: Part, headers: Mapping[str, Part]) -> None:
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers


Test = Callable[[Subject], bool]


def compiled(text: str, now_ms: int) -> Test:
    """The filter as a function. FilterError."""
    return _test(parse(text, now_ms))


def _test(node: Node) -> Test:
    match node:
        case Both(of=parts):
            tests = tuple(map(_test, parts))
            return lambda subject: all(test(subject) for test in tests)
        case Either(of=parts):
            choices = tuple(map(_test, parts))
            return lambda subject: any(test(subject) for test in choices)
        case Not(of=inner):
            test = _test(inner)
            return lambda subject: not test(subject)
        case Has(path=path):
            find = _finder(path)
            return lambda subject: find(subject) is not MISSING
        case Anywhere(text=text):
            return lambda subject: text in (subject.key.text or "") or text in (subject.value.text or "")
        case Compare():
            return _comparison(node)


def _comparison(node: Compare) -> Test:
    find = _finder(node.path, textual=_is_textual(node))
    compare = _operator(node)
    return lambda subject: compare(find(subject))


def _is_textual(node: Compare) -> bool:
    """Whether a whole key, value or header is taken as its text, not as the JSON in it."""
    literals = node.literal if isinstance(node.literal, tuple) else (node.literal,)
    return all(each is None or isinstance(each, str) for each in literals)


# -- fields -----------------------------------------------------------------------------------------------------------------


def _finder(path: Path, *, textual: bool = False) -> Callable[[Subject], Any]:
    root, steps = path.root, path.steps
    if root == "header":
        name, inside = str(steps[0]), steps[1:]
        absent = object()

        def header(subject: Subject) -> Any:
            part: Any = subject.headers.get(name, absent)
            return MISSING if part is absent else _of_part(part, inside, textual)

        return header
    if root == "key":
        return lambda subject: _of_part(subject.key, steps, textual)
    if root == "value":
        return lambda subject: _of_part(subject.value, steps, textual)
    if root == "size(key)":
        return lambda subject: subject.key.size
    if root == "size(value)":
        return lambda subject: subject.value.size
    return lambda subject: getattr(subject, root)


def _of_part(part: Part, steps: tuple[str | int, ...], textual: bool) -> Any:
    if not steps:
        return part.text if textual else part.json
    found = part.json
    for step in steps:
        if isinstance(step, str):
            if not isinstance(found, dict) or step not in found:
                return MISSING
            found = found[step]
        else:
            if not isinstance(found, list) or step >= len(found):
                return MISSING
            found = found[step]
    return found


# -- operators --------------------------------------------------------------------------------------------------------------


def _operator(node: Compare) -> Callable[[Any], bool]:
    literal: Any = node.literal
    match node.operator:
        case "==":
            return lambda found: _equal(found, literal)
        case "!=":
            return lambda found: not _equal(found, literal)
        case "in":
            return lambda found: any(_equal(found, each) for each in literal)
        case "<":
            return lambda found: _alike(found, literal) and found < literal
        case "<=":
            return lambda found: _alike(found, literal) and found <= literal
        case ">":
            return lambda found: _alike(found, literal) and found > literal
        case ">=":
            return lambda found: _alike(found, literal) and found >= literal
        case "matches":
            return _pattern(str(literal), node.ignore_case)
    return _text_test(node.operator, str(literal), node.ignore_case)


def _equal(found: Any, literal: Literal) -> bool:
    if literal is None:
        return found is None
    if isinstance(literal, bool) or isinstance(found, bool):
        return found is literal
    return _alike(found, literal) and found == literal


def _alike(found: Any, literal: Any) -> bool:
    """Whether both are texts, or both numbers."""
    if isinstance(literal, str):
        return isinstance(found, str)
    return isinstance(found, int | float) and not isinstance(found, bool)


def _text_test(operator: str, literal: str, ignore_case: bool) -> Callable[[Any], bool]:
    wanted = literal.casefold() if ignore_case else literal

    def test(found: Any) -> bool:
        if not isinstance(found, str):
            return False
        text = found.casefold() if ignore_case else found
        if operator == "contains":
            return wanted in text
        return text.startswith(wanted) if operator == "startswith" else text.endswith(wanted)

    return test


def _pattern(pattern: str, ignore_case: bool) -> Callable[[Any], bool]:
    try:
        import re2
    except ImportError:
        raise FilterError("matches needs google-re2, which this Python does not have; use contains", 0) from None
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        found = re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise FilterError("the pattern has half a surrogate, which is no text", 0) from None
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise FilterError(f"the pattern cannot be used: {reason}", 0) from None
    if found.programsize > MAX_PROGRAM:
        raise FilterError("the pattern takes too long: give it smaller counts, or fewer kinds of letters", 0)
    return lambda value: isinstance(value, str) and found.search(_encodable(value)) is not None


def _encodable(text: str) -> str:
    """JSON may have lone surrogates, which UTF-8 does not."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
