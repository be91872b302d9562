"""The canonical text of an Avro schema: compact JSON in the order in which Avro's Java library writes it.

Named types are written in full where they come first, by name afterwards; those of references by name only. Names are written
without their namespace where it is the one that holds there. Attributes that Avro does not define follow Avro's own, before
aliases.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidelog.registry.formats.avro.types import MISSING, NAMED, Field, Type, short
from tidelog.registry.model import compact


def print_type(kind: Type, known: Iterable[str] = (), *, sort_props: bool = False) -> str:
    """The text. ``known``: full names that are written by name only; ``sort_props``: attributes that Avro does not define by
    name."""
    return compact(_Printer(set(known), sort_props).value(kind, ""))


class _Printer:
    def __init__(self, seen: set[str], sort_props: bool) -> None:
        self._seen = seen
        self._sort = sort_props

    def value(self, kind: Type, space: str) -> Any:
        if kind.kind == "union":
            return [self.value(each, space) for each in kind.inner]
        if kind.kind in NAMED:
            return self._named(kind, space)
        if kind.kind in ("array", "map"):
            inner = self.value(kind.inner[0], space)
            return {"type": kind.kind, "items" if kind.kind == "array" else "values": inner} | self._props(kind.props)
        return {"type": kind.kind} | self._props(kind.props) if kind.props else kind.kind

    def _named(self, kind: Type, space: str) -> Any:
        if kind.full_name in self._seen:
            return short(kind.full_name, space)
        self._seen.add(kind.full_name)
        result: dict[str, Any] = {"type": kind.kind, "name": kind.name}
        if kind.space != space:
            result["namespace"] = kind.space
        if kind.doc is not None:
            result["doc"] = kind.doc
        if kind.kind == "enum":
            result["symbols"] = kind.symbols
            if kind.default is not MISSING:
                result["default"] = kind.default
        elif kind.kind == "fixed":
            result["size"] = kind.size
        else:
            result["fields"] = [self._field(each, kind.space) for each in kind.fields]
        result |= self._props(kind.props)
        if kind.aliases:
            result["aliases"] = [short(each, kind.space) for each in kind.aliases]
        return result

    def _field(self, each: Field, space: str) -> dict[str, Any]:
        result: dict[str, Any] = {"name": each.name, "type": self.value(each.type, space)}
        if each.doc is not None:
            result["doc"] = each.doc
        if each.default is not MISSING:
            result["default"] = each.default
        if each.order != "ascending":
            result["order"] = each.order
        if each.aliases:
            result["aliases"] = list(each.aliases)
        return result | self._props(each.props)

    def _props(self, props: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(props.items())) if self._sort else props
