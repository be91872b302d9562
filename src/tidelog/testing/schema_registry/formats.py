"""The three formats behind one interface: the same schema always has the same text, and two schemas can be compared.

Each format has its own module, imported with the first schema that needs it, so that a test suite with Avro alone needs no
Protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, cast

from tidelog.testing.schema_registry.errors import InvalidSchema

MODULES = {"AVRO": "avro", "JSON": "json_schema", "PROTOBUF": "protobuf"}
PACKAGE = "tidelog.testing.schema_registry"


@dataclass(frozen=True, slots=True)
class Document:
    """A schema's text with the texts of its references, under the names that it uses for them, innermost first."""

    text: str
    references: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Why a reader cannot read a writer's data; empty when it can. ``unchecked`` names what was not compared."""

    reasons: list[str]
    unchecked: list[str] = field(default_factory=list)


class Format(Protocol):
    """The interface of a format's module."""

    def canonical(self, document: Document, normalize: bool) -> str:
        """The canonical text. InvalidSchema when it is not a schema."""

    def compare(self, reader: Document, writer: Document) -> Comparison:
        """Whether ``reader`` can read data of ``writer``."""


def format_of(kind: str) -> Format:
    """The format of a ``schemaType``. InvalidSchema for others, and where its parser is not installed."""
    module = MODULES.get(kind)
    if module is None:
        raise InvalidSchema(f"schemaType {kind!r} is none of {', '.join(MODULES)}")
    try:
        return cast(Format, import_module(f"{PACKAGE}.{module}"))
    except ModuleNotFoundError as missing:
        raise InvalidSchema(f"{kind} needs the package {missing.name}: pip install 'tidelog[testing]'") from missing
