"""The three formats behind one contract: the same schema always has the same text, and two can be compared.

Each format is a module of its own and imported with the first schema that needs it, so that a test suite with Avro alone needs
no Protobuf.
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
    """A schema's text with the texts of all that it refers to, by the names that it uses for them, innermost first."""

    text: str
    references: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Why a reader cannot read what a writer wrote; empty when it can. ``unchecked`` names what was not looked at."""

    reasons: list[str]
    unchecked: list[str] = field(default_factory=list)


class Format(Protocol):
    """What a module of a format has."""

    def canonical(self, document: Document, normalize: bool) -> str:
        """The text under which it is kept. InvalidSchema when it is none."""

    def compare(self, reader: Document, writer: Document) -> Comparison:
        """Can data of ``writer`` be read with ``reader``?"""


def format_of(kind: str) -> Format:
    """The format of a ``schemaType``. InvalidSchema for others, and where its parser is not installed."""
    module = MODULES.get(kind)
    if module is None:
        raise InvalidSchema(f"schemaType {kind!r} is none of {', '.join(MODULES)}")
    try:
        return cast(Format, import_module(f"{PACKAGE}.{module}"))
    except ModuleNotFoundError as missing:
        raise InvalidSchema(f"{kind} needs the package {missing.name}: pip install 'tidelog[testing]'") from missing
