"""``formats.Format`` for Avro."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.registry.formats import Difference, Document
from tidelog.registry.formats.avro import tags
from tidelog.registry.formats.avro.parsing import parse
from tidelog.registry.formats.avro.printing import print_type
from tidelog.registry.formats.avro.resolution import differences
from tidelog.registry.formats.avro.types import Type
from tidelog.registry.formats.tagging import Tagged

RESOLVED = "resolved"


def canonical(document: Document, *, normalize: bool, new: bool) -> str:
    """See ``Format.canonical``. New schemas have defaults of their fields' types; ``normalize`` sorts users' attributes."""
    found, outer = parse(document.text, document.references.values(), check_defaults=new)
    return print_type(found, outer, sort_props=normalize)


def compare(reader: Document, writer: Document, *, lenient: bool) -> list[Difference]:
    """See ``Format.compare``; there is one policy."""
    return differences(_type(reader), _type(writer))


def formatted(document: Document, form: str) -> str:
    """``resolved``: with the types of references in it."""
    return print_type(_type(document)) if form == RESOLVED else document.text


def tagged(document: Document) -> Iterable[Tagged]:
    """See ``Format.tagged``."""
    return tags.tagged(_type(document))


def _type(document: Document) -> Type:
    return parse(document.text, document.references.values())[0]
