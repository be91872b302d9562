"""Schemas as their formats see them: with the texts of their references, canonical, in a client's form, compared with versions.

Canonical texts of small schemas are kept, up to a bound: serializers ask for the same ones again and again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tidelog.registry import errors
from tidelog.registry.compatibility import Candidate, check
from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document, format_of
from tidelog.registry.formats.tagging import described
from tidelog.registry.model import Reference, Schema, Version, context_of, qualified
from tidelog.registry.state import State

MAX_REFERENCES = 1000
MAX_REFERENCE_DEPTH = 100
_Place = tuple[str, int]
_KEPT = 1024
_LARGEST_KEPT = 64 << 10
_Key = tuple[str, str, tuple[tuple[str, str], ...], bool, bool]


class Library:
    """Over one state. Methods raise RegistryError (42201, 42209) for schemas that cannot be."""

    def __init__(self, state: State, max_schema_bytes: int) -> None:
        self._state = state
        self._max_bytes = max_schema_bytes
        self._canonical: OrderedDict[_Key, str] = OrderedDict()

    def document(self, schema: Schema, context: str) -> Document:
        """A schema of a context, with its references. InvalidSchema when one leads nowhere."""
        found: dict[str, str] = {}
        self._collect(schema.references, context, found, {}, 0)
        return Document(schema.text, found)

    def _collect(
        self, references: Iterable[Reference], context: str, found: dict[str, str], done: dict[_Place, bool], depth: int
    ) -> None:
        """``done``: the versions that were seen, True when all that they refer to is in ``found``: each is followed once."""
        if depth > MAX_REFERENCE_DEPTH:
            raise InvalidSchema(f"its references lead to others more than {MAX_REFERENCE_DEPTH} times")
        for each in references:
            place = (qualified(context, each.subject), each.version)
            target = self._state.version(*place)
            if target is None:
                raise InvalidSchema(f"its reference {each.name} leads nowhere: {place[0]} has no version {each.version}")
            if done.get(place) is False or len(found) > MAX_REFERENCES:
                raise InvalidSchema(f"its references go in a circle, or are more than {MAX_REFERENCES}")
            if place not in done:
                done[place] = False
                self._collect(target.schema.references, context_of(place[0]), found, done, depth + 1)
                done[place] = True
            found.setdefault(each.name, target.schema.text)

    def canonical(self, schema: Schema, context: str, *, normalize: bool, new: bool) -> Schema:
        """The schema with its canonical text; ``normalize`` also sorts its references. ``new``: see ``formats.Format``."""
        size = len(schema.text.encode("utf-8", "surrogatepass"))
        if size > self._max_bytes:
            raise errors.too_large(size, self._max_bytes)
        if normalize:
            schema = replace(schema, references=tuple(sorted(set(schema.references), key=lambda each: (each.name, each.subject))))
        try:
            with _refusing():
                schema.text.encode()
                document = self.document(schema, context)
                text = self._text(schema.kind, document, normalize, new)
                text.encode()
                return replace(schema, text=text)
        except UnicodeEncodeError as problem:
            raise errors.invalid_schema("its text is not Unicode") from problem

    def _text(self, kind: str, document: Document, normalize: bool, new: bool) -> str:
        key = (kind, document.text, tuple(document.references.items()), normalize, new)
        found = self._canonical.get(key)
        if found is None:
            found = format_of(kind).canonical(document, normalize=normalize, new=new)
            if len(document.text) + sum(map(len, document.references.values())) <= _LARGEST_KEPT:
                self._canonical[key] = found
                while len(self._canonical) > _KEPT:
                    self._canonical.popitem(last=False)
        return found

    def formatted(self, schema: Schema, context: str, form: str) -> str:
        """The text in the form that ``format=`` names."""
        if not form:
            return schema.text
        with _refusing():
            return format_of(schema.kind).formatted(self.document(schema, context), form)

    def tagged(self, schema: Schema, context: str, wanted: Collection[str]) -> list[dict[str, Any]]:
        """The records and fields with one of these tags, ``*`` standing for any, as they are in answers."""
        with _refusing():
            return described(format_of(schema.kind).tagged(self.document(schema, context)), wanted)

    def same(self, versions: Iterable[Version], wanted: Schema, *, normalize: bool) -> Version | None:
        """The newest version with a canonical schema. Versions that other registries wrote may have another text for it.

        Without metadata and rules in ``wanted``, those of versions do not count.
        """
        newest_first = sorted(versions, key=lambda each: -each.number)
        for each in newest_first:
            if each.schema == wanted:
                return each
        plain = wanted.metadata is None and wanted.rule_set is None
        for each in newest_first:
            schema = replace(each.schema, metadata=None, rule_set=None) if plain else each.schema
            if schema == wanted or self._canonically(schema, context_of(each.subject), normalize) == wanted:
                return each
        return None

    def _canonically(self, schema: Schema, context: str, normalize: bool) -> Schema | None:
        try:
            return self.canonical(schema, context, normalize=normalize, new=False)
        except errors.RegistryError:
            return None

    def compatible(self, schema: Schema, context: str, earlier: Iterable[Version], level: str, *, lenient: bool) -> list[str]:
        """Why a canonical schema is incompatible with earlier versions, in order; empty if it is compatible."""
        found = list(earlier)
        if not found or level == "NONE":
            return []
        with _refusing():
            new = Candidate(schema.kind, self.document(schema, context))
            old = [
                Candidate(each.schema.kind, self.document(each.schema, context_of(each.subject)), each.number) for each in found
            ]
            return check(new, old, level, lenient=lenient)


@contextmanager
def _refusing() -> Iterator[None]:
    """42201 for a schema that cannot be used."""
    try:
        yield
    except InvalidSchema as problem:
        raise errors.invalid_schema(str(problem)) from problem
    except RecursionError as problem:
        raise errors.invalid_schema("it is nested too deeply") from problem
