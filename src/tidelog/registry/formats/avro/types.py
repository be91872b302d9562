"""An Avro schema as a tree of types. A named type is one object wherever the schema mentions it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})
MISSING = object()
"""A default that there is not; null is one."""


@dataclass(slots=True, eq=False)
class Type:
    """``inner`` is the items of an array, the values of a map, or the branches of a union. ``props``: attributes that Avro's
    specification does not define, logical types among them."""

    kind: str
    props: dict[str, Any] = field(default_factory=dict)
    inner: list[Type] = field(default_factory=list)
    name: str = ""
    space: str = ""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    """Full names."""
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    known_symbols: frozenset[str] = frozenset()
    """The symbols as a set, for looking up."""
    default: Any = MISSING
    """The default symbol of an enum."""
    size: int = 0

    @property
    def full_name(self) -> str:
        """The name with its namespace; the kind of a type without a name."""
        return full(self.name, self.space) if self.name else self.kind


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record; ``aliases`` are names of fields."""

    name: str
    type: Type
    doc: str | None = None
    default: Any = MISSING
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)


def full(name: str, space: str) -> str:
    """A name in a namespace; one with a dot is complete."""
    return name if "." in name or not space else f"{space}.{name}"


def short(full_name: str, space: str) -> str:
    """How a full name is written where ``space`` holds: without the namespace if that is the same."""
    before, _, name = full_name.rpartition(".")
    return name if before == space or not before else full_name
