"""Columns of a batch whose type differs from the table's, and which of those only grew wider. Pure: Spark's types alone."""

from __future__ import annotations

from typing import Any

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def changed(table: Any, rows: Any) -> tuple[list[str], list[str]]:
    """(columns that grew wider, other columns that the table cannot hold), each with both types. Structs are compared by field
    name; fields that only one side has are ignored."""
    wider: list[str] = []
    other: list[str] = []
    _compare(table, rows, "", wider, other)
    return wider, other


def _compare(table: Any, rows: Any, path: str, wider: list[str], other: list[str]) -> None:
    here, there = rows.typeName(), table.typeName()
    if here == there == "struct":
        known = {field.name.lower(): field.dataType for field in table.fields}
        for field in rows.fields:
            if field.name.lower() in known:
                _compare(known[field.name.lower()], field.dataType, f"{path}.{field.name}" if path else field.name, wider, other)
    elif here == there == "array":
        _compare(table.elementType, rows.elementType, f"{path}[]", wider, other)
    elif here == there == "map":
        _compare(table.keyType, rows.keyType, f"{path}.key", wider, other)
        _compare(table.valueType, rows.valueType, f"{path}.value", wider, other)
    elif not holds(old := table.simpleString(), new := rows.simpleString()):
        (wider if grows(old, new) else other).append(f"{path} ({new} in the rows, {old} in the table)")


def added(table: Any, rows: Any) -> list[tuple[tuple[str, ...], str]]:
    """Fields of the rows that the table lacks, also inside of structs, lists and maps: their path and type.

    A path is Iceberg's: ``element`` of a list, ``key`` and ``value`` of a map. What is below a new field is not named again.
    """
    found: list[tuple[tuple[str, ...], str]] = []
    _walk(table, rows, (), found, [])
    return found


def grown(table: Any, rows: Any) -> list[tuple[tuple[str, ...], str]]:
    """Fields that only grew wider: their path, as in ``added``, and the type in the rows."""
    found: list[tuple[tuple[str, ...], str]] = []
    _walk(table, rows, (), [], found)
    return found


_Fields = list[tuple[tuple[str, ...], str]]


def _walk(table: Any, rows: Any, path: tuple[str, ...], new: _Fields, wider: _Fields) -> None:
    here, there = rows.typeName(), table.typeName()
    if here == there == "struct":
        known = {field.name.lower(): field for field in table.fields}
        for field in rows.fields:
            old = known.get(field.name.lower())
            if old is None:
                new.append(((*path, field.name), field.dataType.simpleString()))
            else:
                _walk(old.dataType, field.dataType, (*path, old.name), new, wider)
    elif here == there == "array":
        _walk(table.elementType, rows.elementType, (*path, "element"), new, wider)
    elif here == there == "map":
        _walk(table.keyType, rows.keyType, (*path, "key"), new, wider)
        _walk(table.valueType, rows.valueType, (*path, "value"), new, wider)
    elif not holds(table.simpleString(), kind := rows.simpleString()) and grows(table.simpleString(), kind):
        wider.append((path, kind))


def grows(old: str, new: str) -> bool:
    """Whether Delta widens a column by itself. From a whole number to a fraction it does not."""
    same = (old in _WHOLE) == (new in _WHOLE) and old.startswith("decimal") == new.startswith("decimal")
    return same and holds(new, old)


def holds(column: str, value: str) -> bool:
    """Whether a column of one type holds every value of the other unchanged."""
    if value in (column, "void") or (column, value) == ("timestamp", "date"):
        return True
    if column == "string":
        return value in (*_WHOLE, "boolean", "date") or value.startswith(("char", "varchar", "decimal"))
    if column in _WHOLE and value in _WHOLE:
        return _WHOLE.index(column) >= _WHOLE.index(value)
    if column == "double":
        return value in ("float", "tinyint", "smallint", "int")
    into, of = _decimal(column), _decimal(value)
    return into is not None and of is not None and column.startswith("decimal") and into[0] >= of[0] and into[1] >= of[1]


def _decimal(name: str) -> tuple[int, int] | None:
    """Digits before and after the point."""
    if name in _DIGITS:
        return _DIGITS[name], 0
    if not name.startswith("decimal("):
        return None
    precision, scale = (int(part) for part in name[8:-1].split(","))
    return precision - scale, scale
