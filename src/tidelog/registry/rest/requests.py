"""Requests, and the values in them: flags, numbers, schemas, versions, pages of lists. All errors are RegistryError."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tidelog.registry import contracts, errors
from tidelog.registry.model import AVRO, DEFAULT_CONTEXT, LATEST, MAX_VERSION, Reference, Schema, compact

T = TypeVar("T")
SCHEMA_FIELDS = frozenset({"schema", "schemaType", "references", "metadata", "ruleSet", "id", "version"})
_TAG_FIELDS = ("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags")
MAX_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Request:
    """``path`` as it came, with escapes. ``accept_unknown``: unknown fields of the body are ignored."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: bytes = b""
    accept_unknown: bool = False
    context: str = DEFAULT_CONTEXT
    """The context in the path."""

    def text(self, name: str, otherwise: str = "") -> str:
        """The first value of a parameter."""
        return next(iter(self.query.get(name, ())), otherwise)

    def flag(self, name: str) -> bool:
        """Whether a parameter is true, in upper or lower case."""
        return self.text(name).lower() == "true"

    def number(self, name: str, otherwise: int) -> int:
        """A parameter as a number. 404, as for a path that is not there, for another text."""
        text = self.text(name, str(otherwise))
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
            raise errors.RegistryError(404, 404, f"{name} is no number: {text[:40]!r}")
        return int(text)

    def page(self, found: Iterable[T], *, cap: int | None = None) -> list[T]:
        """The part of a list between ``offset`` and ``limit``, of at most ``cap`` entries."""
        items = list(found)
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        if cap is not None and not 0 <= limit <= cap:
            limit = cap
        return items[offset:] if limit < 0 else items[offset : offset + limit]

    def object(self, known: frozenset[str]) -> dict[str, Any]:
        """The body, which is a JSON object with these fields. 400, 422."""
        try:
            found = json.loads(self.body or b"null")
            compact(found).encode()  # answers and records hold it: without lone surrogates
        except (ValueError, RecursionError) as problem:
            why = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
            raise errors.bad_request(f"the body is not JSON: {why}") from problem
        if not isinstance(found, dict):
            raise errors.bad_request("the body is a JSON object")
        unknown = [name for name in found if name not in known]
        if unknown and not self.accept_unknown:
            raise errors.unknown_field(unknown[0])
        return {name: value for name, value in found.items() if name in known}

    def schema(self) -> tuple[Schema, dict[str, Any]]:
        """The schema in the body, and the body. An empty text stands for the previous version's."""
        body = self.object(SCHEMA_FIELDS | {*_TAG_FIELDS})
        if any(body.get(name) for name in _TAG_FIELDS):
            raise errors.bad_request(f"this registry does not change tags: leave out {', '.join(_TAG_FIELDS)}")
        text, kind = body.get("schema"), body.get("schemaType")
        if not isinstance(text, str | None) or not isinstance(kind, str | None):
            raise errors.bad_request("schema and schemaType are texts")
        found = Schema(
            (kind or AVRO).upper(),
            text or "",
            _references(body.get("references")),
            contracts.metadata_text(body.get("metadata")),
            contracts.rule_set_text(body.get("ruleSet"), check=False),
        )
        return found, body


def integer(body: Mapping[str, Any], name: str, otherwise: int = -1) -> int:
    """A whole number of 32 bits in a body."""
    found = body.get(name)
    if found is None:
        return otherwise
    if not isinstance(found, int) or isinstance(found, bool) or not -1 <= found <= MAX_INT:
        raise errors.bad_request(f"{name} is a number up to {MAX_INT}")
    return found


def _references(value: Any) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise errors.bad_request("references is a list")
    found = []
    for each in value:
        if not isinstance(each, dict) or not all(isinstance(each.get(key), str) for key in ("name", "subject")):
            raise errors.bad_request("a reference has a name, a subject and a version")
        number = integer(each, "version")
        if number < 1:
            raise errors.bad_request("the version of a reference is a number from 1 on")
        found.append(Reference(each["name"], each["subject"], number))
    return tuple(found)


def version_number(text: str) -> int:
    """A version in a path; LATEST for ``latest`` and ``-1``. 42202."""
    if text in ("latest", "-1"):
        return LATEST
    if not text.isascii() or not text.isdigit() or len(text) > 10 or not 0 < int(text) <= MAX_VERSION:
        raise errors.invalid_version(text)
    return int(text)
