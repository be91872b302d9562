"""From the JSON of an Avro schema to its types. All errors are InvalidSchema, with the place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import parse_json
from tidelog.registry.formats.avro.types import MISSING, NAMED, PRIMITIVES, Field, Type, full

MAX_DEPTH = 128
MAX_NAME = 1024
"""Characters of a full name: all types in a namespace carry it."""
MAX_FITS = 100_000
"""Comparisons of defaults with types, in one schema: a union of recursive records may need any number of them."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_SCHEMA = frozenset({"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"})
_OF_FIELD = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS = ("ascending", "descending", "ignore")


def parse(text: str, references: Iterable[str] = (), *, check_defaults: bool = False) -> tuple[Type, frozenset[str]]:
    """The type, and the full names that its references define. ``references`` are the texts, innermost first."""
    parser = _Parser()
    for each in references:
        parser.schema(load(each), "")
    outer = frozenset(parser.names)
    parser.check_defaults = check_defaults
    return parser.schema(load(text), ""), outer


def load(text: str) -> Any:
    """Parse JSON; the bare name of a type is a schema as well."""
    try:
        return parse_json(text)
    except ValueError:
        if re.fullmatch(r"[A-Za-z_][\w.]*", text.strip(), re.A):
            return text.strip()
        raise InvalidSchema("it is not JSON") from None
    except RecursionError as problem:
        raise InvalidSchema("it is nested too deeply") from problem


class _Parser:
    def __init__(self) -> None:
        self.names: dict[str, Type] = {}
        self.check_defaults = False
        self._defaults = _Defaults()
        self._depth = 0

    def schema(self, node: Any, space: str) -> Type:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidSchema("it is nested too deeply")
        try:
            if isinstance(node, str):
                return self._named_here(node, space)
            if isinstance(node, list):
                return self._union(node, space)
            if isinstance(node, dict):
                return self._object(node, space)
            raise InvalidSchema(f"{str(node)[:40]!r} is no schema")
        finally:
            self._depth -= 1

    def _named_here(self, name: str, space: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        found = self.names.get(full(name, space)) or self.names.get(name)
        if found is None:
            raise InvalidSchema(f"the type {full(name, space)!r} is not defined")
        return found

    def _union(self, nodes: list[Any], space: str) -> Type:
        result = Type("union", inner=[self.schema(each, space) for each in nodes])
        seen = set()
        for each in result.inner:
            if each.kind == "union":
                raise InvalidSchema("a union contains a union")
            if each.full_name in seen:
                raise InvalidSchema(f"a union has {each.full_name} twice")
            seen.add(each.full_name)
        return result

    def _object(self, node: dict[str, Any], space: str) -> Type:
        kind = node.get("type")
        if isinstance(kind, dict | list):
            return self.schema(kind, space)
        if not isinstance(kind, str):
            raise InvalidSchema("a schema has no type")
        if kind in NAMED:
            return self._definition(node, kind, space)
        if kind not in PRIMITIVES and kind not in ("array", "map"):
            return self._named_here(kind, space)
        result = Type(kind, {key: value for key, value in node.items() if key not in _OF_SCHEMA})
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in node:
                raise InvalidSchema(f"{kind} has no {key}")
            result.inner = [self.schema(node[key], space)]
        return result

    def _definition(self, node: dict[str, Any], kind: str, outer: str) -> Type:
        given = node.get("name")
        if not isinstance(given, str):
            raise InvalidSchema(f"{kind} has no name")
        before, _, name = given.rpartition(".")
        space = before or node.get("namespace", outer)
        if not isinstance(space, str) or not all(_NAME.fullmatch(part) for part in space.split(".") if space):
            raise InvalidSchema(f"the namespace of {given[:80]!r} is {str(space)[:80]!r}")
        if not _NAME.fullmatch(name) or len(name) + len(space) > MAX_NAME:
            raise InvalidSchema(f"{given[:80]!r} is no name, or has with its namespace more than {MAX_NAME} characters")
        reserved = _OF_SCHEMA | {"default"} if kind == "enum" else _OF_SCHEMA
        result = Type(kind, {key: value for key, value in node.items() if key not in reserved}, name=name, space=space)
        if result.full_name in PRIMITIVES or result.full_name in self.names:
            raise InvalidSchema(f"{result.full_name} is defined twice")
        self.names[result.full_name] = result
        result.doc = _text(node, "doc")
        result.aliases = tuple(full(each, space) for each in _texts(node, "aliases"))
        if kind == "enum":
            self._enum(node, result)
        elif kind == "fixed":
            size = node.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise InvalidSchema(f"the size of {name} is {size!r}")
            result.size = size
        else:
            self._fields(node, result)
        return result

    @staticmethod
    def _enum(node: dict[str, Any], result: Type) -> None:
        if "symbols" not in node:
            raise InvalidSchema(f"enum {result.name} has no symbols")
        result.symbols = _texts(node, "symbols")
        result.known_symbols = frozenset(result.symbols)
        wrong = next((each for each in result.symbols if not _NAME.fullmatch(each)), None)
        if wrong is not None or len(result.known_symbols) < len(result.symbols):
            raise InvalidSchema(f"the symbols of {result.name} have {wrong!r}" if wrong else f"{result.name} has a symbol twice")
        if "default" in node:
            result.default = node["default"]
            if not isinstance(result.default, str) or result.default not in result.known_symbols:
                raise InvalidSchema(f"the default of {result.name}, {result.default!r}, is no symbol of it")

    def _fields(self, node: dict[str, Any], record: Type) -> None:
        nodes = node.get("fields")
        if not isinstance(nodes, list):
            raise InvalidSchema(f"{record.kind} {record.name} has no fields")
        seen = set()
        for each in nodes:
            found = self._field(each, record)
            if found.name in seen:
                raise InvalidSchema(f"{record.name} has two fields {found.name!r}")
            seen.add(found.name)
            record.fields.append(found)
        if self.check_defaults:
            for made in record.fields:
                if made.default is not MISSING and not self._defaults.fits(made.type, made.default):
                    raise InvalidSchema(f"the default of {record.name}.{made.name} is no {made.type.full_name}")

    def _field(self, node: Any, record: Type) -> Field:
        name = node.get("name") if isinstance(node, dict) else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidSchema(f"{name!r} is no name of a field of {record.name}")
        if "type" not in node:
            raise InvalidSchema(f"{record.name}.{name} has no type")
        order = node.get("order", _ORDERS[0])
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"the order of {record.name}.{name} is {order!r}")
        return Field(
            name,
            self.schema(node["type"], record.space),
            _text(node, "doc"),
            node.get("default", MISSING),
            order.lower(),
            tuple(_texts(node, "aliases")),
            {key: value for key, value in node.items() if key not in _OF_FIELD},
        )


class _Defaults:
    """Whether defaults are values of their types. InvalidSchema when that takes more than MAX_FITS comparisons."""

    def __init__(self) -> None:
        self._left = MAX_FITS

    def fits(self, kind: Type, value: Any, depth: int = 0) -> bool:
        """Of a union, a value of any branch."""
        self._left -= 1
        if self._left < 0:
            raise InvalidSchema(f"its defaults take more than {MAX_FITS} comparisons with their types")
        if depth > MAX_DEPTH:
            return False
        match kind.kind:
            case "null":
                return value is None
            case "boolean":
                return isinstance(value, bool)
            case "int" | "long":
                bits = 31 if kind.kind == "int" else 63
                return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
            case "float" | "double":
                return isinstance(value, int | float) and not isinstance(value, bool)
            case "string" | "bytes" | "fixed":
                return isinstance(value, str)
            case "enum":
                return isinstance(value, str) and value in kind.known_symbols
            case "array":
                return isinstance(value, list) and all(self.fits(kind.inner[0], each, depth + 1) for each in value)
            case "map":
                return isinstance(value, dict) and all(self.fits(kind.inner[0], each, depth + 1) for each in value.values())
            case "union":
                return any(self.fits(each, value, depth + 1) for each in kind.inner)
        if not isinstance(value, dict):
            return False
        values = ((each.type, value.get(each.name, each.default)) for each in kind.fields)
        return all(found is not MISSING and self.fits(inner, found, depth + 1) for inner, found in values)


def _text(node: dict[str, Any], key: str) -> str | None:
    found = node.get(key)
    return found if isinstance(found, str) else None


def _texts(node: dict[str, Any], key: str) -> list[str]:
    found = node.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidSchema(f"{key} is a list of texts")
    return found
