"""Requests to the registry and the JSON of what it returns: schemas, versions, pages of lists. All errors are RegistryError."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.settings import DEFAULT_CONTEXT
from tidelog.testing.schema_registry.store import Reference, Schema, Version


@dataclass(frozen=True, slots=True)
class Request:
    """One request; ``body`` is its parsed JSON, None without one."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any = None

    def flag(self, name: str) -> bool:
        """Whether a parameter is true, in upper or lower case."""
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, otherwise: int) -> int:
        """A parameter as a number."""
        try:
            return int(self.query.get(name, otherwise))
        except ValueError as problem:
            raise errors.bad_request(f"{name} is no number: {self.query[name]!r}") from problem

    def split_context(self) -> tuple[str, str]:
        """The context and the path in it: ``/contexts/:.name:/subjects`` is ``/subjects`` of ``.name``."""
        match = re.fullmatch(r"/contexts/([^/]+)(/.*)", self.path)
        if match is None:
            return DEFAULT_CONTEXT, self.path.rstrip("/") or "/"
        return unquote(match[1]).strip(":") or DEFAULT_CONTEXT, match[2].rstrip("/") or "/"

    def object(self) -> dict[str, Any]:
        """The body, which has to be a JSON object."""
        if not isinstance(self.body, dict):
            raise errors.bad_request("the body is a JSON object")
        return self.body

    def schema(self) -> Schema:
        """The schema in the body."""
        body = self.object()
        text = body.get("schema")
        if not isinstance(text, str) or not text.strip():
            raise errors.invalid_schema("it is empty")
        try:
            references = tuple(
                Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in body.get("references") or ()
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise errors.bad_request("a reference has a name, a subject and a version") from problem
        return Schema(
            str(body.get("schemaType") or "AVRO").upper(),
            text,
            references,
            None if body.get("metadata") is None else json.dumps(body["metadata"], sort_keys=True),
            None if body.get("ruleSet") is None else json.dumps(body["ruleSet"], sort_keys=True),
        )

    def page(self, found: list[Any]) -> list[Any]:
        """The part of a list between ``offset`` and ``limit``."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return found[offset:] if limit < 0 else found[offset : offset + limit]


def version_number(text: str) -> int:
    """A version in a path; -1 is the latest."""
    if text in ("latest", "-1"):
        return -1
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise errors.invalid_version(text)
    return int(text)


def content(schema: Schema) -> dict[str, Any]:
    """A schema in the API's form, where the type AVRO is left out."""
    result: dict[str, Any] = {"schema": schema.text}
    if schema.kind != "AVRO":
        result["schemaType"] = schema.kind
    if schema.references:
        result["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    if schema.metadata is not None:
        result["metadata"] = json.loads(schema.metadata)
    if schema.rule_set is not None:
        result["ruleSet"] = json.loads(schema.rule_set)
    return result


def described(version: Version) -> dict[str, Any]:
    """A version in the API's form."""
    about = {"subject": version.subject, "version": version.number, "id": version.id, "guid": version.schema.guid}
    return about | content(version.schema) | ({"deleted": True} if version.deleted else {})
