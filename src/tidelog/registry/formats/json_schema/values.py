"""Types, enumerated values, bounds of numbers, lengths and counts of JSON Schema: is what the writer accepts accepted by the
reader?

Each function yields (word, keyword, reason) for what the reader refuses. The words are those of Confluent's registry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from typing import Any, TypeGuard

Schema = dict[str, Any]
Fault = tuple[str, str, str]
ALL_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
TYPE_OF: tuple[tuple[type, str], ...] = ((bool, "boolean"), (int, "integer"), (str, "string"), (dict, "object"), (list, "array"))
VALUE_KEYS = frozenset({"type", "enum", "const"})
NUMBER_KEYS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
STRING_KEYS = frozenset({"minLength", "maxLength", "pattern"})
COUNTS = {"minLength": 1, "maxLength": -1, "minItems": 1, "maxItems": -1, "minProperties": 1, "maxProperties": -1}
"""Counts, and the sign by which a larger one is narrower."""


def types_of(schema: Schema) -> frozenset[str]:
    """The types that values of the schema may have; a number may be an integer."""
    kinds = schema.get("type")
    found = frozenset(_named(kinds)) or ALL_TYPES
    if "number" in found:
        found |= {"integer"}
    values = finite(schema, by_type=False)
    return found if values is None else found & {_type(each) for each in values}


def _named(kinds: Any) -> list[str]:
    """The names among types; none if there are schemas among them, as draft 3 allows."""
    found = kinds if isinstance(kinds, list) else [kinds]
    return found if all(isinstance(each, str) for each in found) else []


def finite(schema: Schema, *, by_type: bool = True) -> list[Any] | None:
    """The values that the schema can have, at most; None if there is no end of them. ``by_type``: null and booleans are few
    too."""
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    kinds = schema.get("type")
    if by_type and kinds is not None:
        names = set(_named(kinds))
        if names and names <= {"null", "boolean"}:
            return [*([None] if "null" in names else []), *([True, False] if "boolean" in names else [])]
    return None


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return next(name for kind, name in TYPE_OF if isinstance(value, kind))


def size(schema: Schema) -> int:
    """How much comparing its values costs, in steps."""
    found = schema.get("enum")
    return len(found) // 5 if isinstance(found, list) else 0


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values, where true is not 1."""
    return _form(one) == _form(other)


def _form(value: Any) -> str:
    def plain(each: Any) -> Any:
        if isinstance(each, float) and each.is_integer():
            return int(each)
        if isinstance(each, dict):
            return {key: plain(inner) for key, inner in each.items()}
        return [plain(inner) for inner in each] if isinstance(each, list) else each

    return json.dumps(plain(value), sort_keys=True)


def values(reader: Schema, writer: Schema) -> Iterator[Fault]:
    """Types, enum and const."""
    theirs, mine = types_of(writer), types_of({"type": reader["type"]}) if "type" in reader else ALL_TYPES
    missing = theirs - mine
    if missing:
        word = "TYPE_NARROWED" if theirs & mine else "TYPE_CHANGED"
        yield word, "type", f"{', '.join(sorted(missing))} can be written"
    allowed = finite(reader, by_type=False)
    if allowed is None:
        return
    forms = {_form(each) for each in allowed}
    written = finite(writer)
    keyword = "const" if "const" in reader else "enum"
    if written is None:
        yield "ENUM_ARRAY_NARROWED", keyword, "other values can be written"
    elif missing_values := [each for each in written if _form(each) not in forms]:
        yield "ENUM_ARRAY_NARROWED", keyword, f"{json.dumps(missing_values[0], ensure_ascii=False)} can be written"


def numbers(reader: Schema, writer: Schema) -> Iterator[Fault]:
    """Bounds and multiples, where numbers can be written."""
    kinds = types_of(writer)
    if not kinds & {"number", "integer"}:
        return
    for keyword, sign in (("minimum", 1), ("maximum", -1)):
        mine, theirs = _bound(reader, keyword), _bound(writer, keyword)
        if mine is None:
            continue
        name = ("exclusive" + keyword.capitalize()) if mine[1] else keyword
        word = ("EXCLUSIVE_" if mine[1] else "") + keyword.upper()
        if theirs is None:
            yield f"{word}_ADDED", name, f"numbers beyond {mine[0]} can be written"
        elif sign * mine[0] > sign * theirs[0] or (mine[0] == theirs[0] and mine[1] and not theirs[1]):
            yield f"{word}_{'INCREASED' if sign > 0 else 'DECREASED'}", name, f"it was {theirs[0]}, and is {mine[0]}"
    step, before = reader.get("multipleOf"), writer.get("multipleOf")
    if _number(step) and step and not (kinds.isdisjoint({"number"}) and Fraction(str(step)) == 1):
        if not _number(before):
            yield "MULTIPLE_OF_ADDED", "multipleOf", f"other numbers than multiples of {step} can be written"
        elif Fraction(str(before)) % Fraction(str(step)):
            yield "MULTIPLE_OF_CHANGED", "multipleOf", f"it was {before}, and is {step}"


def _bound(schema: Schema, keyword: str) -> tuple[Any, bool] | None:
    """The tightest bound, and whether it is exclusive. In draft 4 a flag says that."""
    plain, exclusive = schema.get(keyword), schema.get("exclusive" + keyword.capitalize())
    found: list[tuple[Any, bool]] = []
    if _number(plain):
        found.append((plain, exclusive is True))
    if _number(exclusive):
        found.append((exclusive, True))
    if not found:
        return None
    pick = max if keyword == "minimum" else min
    tightest = pick(value for value, _ in found)
    return tightest, any(flag for value, flag in found if value == tightest)


def _number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) != inf


def counts(reader: Schema, writer: Schema, *keywords: str) -> Iterator[Fault]:
    """Lengths, numbers of items or of properties."""
    for keyword in keywords:
        mine, theirs = reader.get(keyword), writer.get(keyword)
        if not _number(mine) or (keyword.startswith("min") and mine <= 0):
            continue
        word = "".join(f"_{each}" if each.isupper() else each for each in keyword).upper()
        if not _number(theirs):
            yield f"{word}_ADDED", keyword, f"there was no {keyword}, and now it is {mine}"
        elif COUNTS[keyword] * mine > COUNTS[keyword] * theirs:
            yield f"{word}_{'INCREASED' if COUNTS[keyword] > 0 else 'DECREASED'}", keyword, f"it was {theirs}, and is {mine}"


def strings(reader: Schema, writer: Schema) -> Iterator[Fault]:
    """Lengths and patterns, where texts can be written. ``format`` is an annotation."""
    if "string" not in types_of(writer):
        return
    yield from counts(reader, writer, "minLength", "maxLength")
    pattern = reader.get("pattern")
    if pattern is not None and pattern != writer.get("pattern"):
        word = "PATTERN_CHANGED" if "pattern" in writer else "PATTERN_ADDED"
        yield word, "pattern", f"texts that do not match {pattern!r} can be written"
