"""The three formats behind one interface, each imported with the first schema that needs it.

``avro`` and ``protobuf`` read schemas with parsers of their own, because both need a canonical text that other registries share;
``json_schema`` lets jsonschema's meta-schemas say what is a schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from typing import Any, Protocol, cast

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats.tagging import Tagged
from tidelog.registry.model import AVRO, JSON, PROTOBUF

_MODULES = {AVRO: "avro.schema_format", JSON: "json_schema.schema_format", PROTOBUF: "protobuf.schema_format"}


@dataclass(frozen=True, slots=True)
class Document:
    """A schema's text with the texts of its references, under the names that it uses for them, innermost first."""

    text: str
    references: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a reader cannot read a writer's data. ``kind`` is a word that Confluent's registry uses; ``path`` is where, in the
    format's own notation; ``info`` is what tools print besides."""

    kind: str
    path: str
    description: str
    info: str = ""


def parse_json(text: str) -> Any:
    """The values of a JSON text. ValueError, also for numbers that are none in JSON; RecursionError."""
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"{text[:20]} is no number of JSON, or too large")
    return found


class Format(Protocol):
    """The interface of a format's module."""

    def canonical(self, document: Document, *, normalize: bool, new: bool) -> str:
        """The canonical text. InvalidSchema when it is not a schema; ``new``: rules for schemas that are registered now hold
        too."""

    def compare(self, reader: Document, writer: Document, *, lenient: bool) -> list[Difference]:
        """Why ``reader`` cannot read all data of ``writer``; empty when it can. ``lenient``: by the policy LENIENT."""

    def tagged(self, document: Document) -> Iterable[Tagged]:
        """The records and fields with tags. InvalidSchema."""

    def formatted(self, document: Document, form: str) -> str:
        """The text in the form that a client asks for by ``format=``; the canonical one for a form that there is not: clients ask
        for those of other types and of later registries. InvalidSchema."""


def format_of(kind: str) -> Format:
    """The format of a ``schemaType``. InvalidSchema for others, and where its parser is not installed."""
    module = _MODULES.get(kind)
    if module is None:
        raise InvalidSchema(f"schemaType {kind!r} is none of {', '.join(_MODULES)}")
    try:
        return cast(Format, import_module(f"{__name__}.{module}"))
    except ModuleNotFoundError as missing:
        raise InvalidSchema(f"{kind} needs the package {missing.name}: pip install 'tidelog[registry]'") from missing
