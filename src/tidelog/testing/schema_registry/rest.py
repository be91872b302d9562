"""Confluent's REST API over a ``Store``: paths, methods and the form of responses.

A request goes in as method, path, query and parsed body, and the response comes out as JSON values; there is no HTTP here. All
paths may follow ``/contexts/:.name:``; subjects in them are then those of that context.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.formats import MODULES
from tidelog.testing.schema_registry.store import (
    DEFAULT_CONTEXT,
    DEFAULT_LEVEL,
    DEFAULT_MODE,
    GLOBAL,
    Reference,
    Schema,
    Store,
    Version,
    context_of,
)

ALL_CONTEXTS = ":*:"
_UNSUPPORTED = (
    "alias", "compatibilityGroup", "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet",
    "compatibilityPolicy",
)  # fmt: skip


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


class Api:
    """``answer`` raises RegistryError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, request: Request) -> Any:
        """The response for the path: a value that becomes JSON, or bytes for a schema as it is."""
        context, path = _split_context(request.path)
        for method, pattern, serve in _ROUTES:
            match = pattern.fullmatch(path)
            if match is not None and method == request.method:
                return serve(self, request, *(self._argument(name, text, context) for name, text in match.groupdict().items()))
        if any(pattern.fullmatch(path) for _, pattern, _ in _ROUTES):
            raise errors.RegistryError(405, 405, f"{request.method} is not served at {path}.")
        raise errors.not_found(path)

    @staticmethod
    def _argument(name: str, text: str, context: str) -> str:
        text = unquote(text)
        qualified = name != "subject" or context == DEFAULT_CONTEXT or text.startswith(":.")
        return text if qualified else f":{context}:{text}"

    # -- subjects ------------------------------------------------------------------------------------------------------------

    def list_subjects(self, request: Request) -> list[str]:
        prefix = request.query.get("subjectPrefix", ALL_CONTEXTS)
        found = self._store.subjects(deleted=request.flag("deleted") or request.flag("deletedOnly"))
        if request.flag("deletedOnly"):
            alive = set(self._store.subjects())
            found = [name for name in found if name not in alive]
        return _page(request, [name for name in found if prefix == ALL_CONTEXTS or name.startswith(prefix)])

    def list_versions(self, request: Request, subject: str) -> list[int]:
        found = self._store.versions(subject, deleted=request.flag("deleted") or request.flag("deletedOnly"))
        return _page(request, [each.number for each in found if each.deleted or not request.flag("deletedOnly")])

    def register(self, request: Request, subject: str) -> dict[str, Any]:
        body = _object(request.body)
        schema_id, number = body.get("id", -1), body.get("version", -1)
        if not isinstance(schema_id, int) or not isinstance(number, int):
            raise errors.bad_request("id and version are numbers")
        version = self._store.register(
            subject,
            _schema(body),
            schema_id=schema_id,
            number=number,
            normalize=request.flag("normalize"),
        )
        return {"id": version.id, "version": version.number, "guid": version.schema.guid} | _content(version.schema)

    def look_up(self, request: Request, subject: str) -> dict[str, Any]:
        schema = _schema(_object(request.body))
        found = self._store.lookup(subject, schema, deleted=request.flag("deleted"), normalize=request.flag("normalize"))
        return _described(found)

    def get_version(self, request: Request, subject: str, version: str) -> dict[str, Any]:
        return _described(self._store.version(subject, _number(version), deleted=request.flag("deleted")))

    def get_version_schema(self, request: Request, subject: str, version: str) -> bytes:
        return self._store.version(subject, _number(version), deleted=request.flag("deleted")).schema.text.encode()

    def referenced_by(self, request: Request, subject: str, version: str) -> list[int]:
        return self._store.referenced_by(self._store.version(subject, _number(version), deleted=True))

    def with_metadata(self, request: Request, subject: str) -> dict[str, Any]:
        """The latest version whose metadata has these properties. ``key`` and ``value`` may be given several times."""
        pairs = zip(request.query.get("key", "").split("\n"), request.query.get("value", "").split("\n"), strict=False)
        wanted = {key: value for key, value in pairs if key}
        for each in reversed(self._store.versions(subject, deleted=request.flag("deleted"))):
            properties = json.loads(each.schema.metadata or "{}").get("properties") or {}
            if wanted.items() <= properties.items():
                return _described(each)
        raise errors.schema_not_found(f"with the metadata {wanted} under '{subject}'")

    def delete_subject(self, request: Request, subject: str) -> list[int]:
        return self._store.delete_subject(subject, permanent=request.flag("permanent"))

    def delete_version(self, request: Request, subject: str, version: str) -> int:
        return self._store.delete_version(subject, _number(version), permanent=request.flag("permanent"))

    # -- schemas -------------------------------------------------------------------------------------------------------------

    def get_schema(self, request: Request, id: str) -> dict[str, Any]:
        context = self._context_of_id(request)
        schema = self._store.by_id(int(id), context)
        result = _content(schema) | {"guid": schema.guid}
        if request.flag("fetchMaxId"):
            result["maxId"] = self._store.highest_id(context)
        return result

    def get_schema_text(self, request: Request, id: str) -> bytes:
        return self._store.by_id(int(id), self._context_of_id(request)).text.encode()

    def get_by_guid(self, request: Request, guid: str) -> dict[str, Any]:
        schema = self._store.by_guid(guid)
        return _content(schema) | {"guid": schema.guid}

    def subjects_of(self, request: Request, id: str) -> list[str]:
        return _page(request, sorted({each.subject for each in self._uses(request, int(id))}))

    def versions_of(self, request: Request, id: str) -> list[dict[str, Any]]:
        return _page(request, [{"subject": each.subject, "version": each.number} for each in self._uses(request, int(id))])

    def _uses(self, request: Request, schema_id: int) -> list[Version]:
        context = self._context_of_id(request)
        self._store.by_id(schema_id, context)
        return self._store.uses_of_id(schema_id, context, deleted=request.flag("deleted"))

    @staticmethod
    def _context_of_id(request: Request) -> str:
        """The context of an id comes from the subject or from the path."""
        context, _ = _split_context(request.path)
        return context if context != DEFAULT_CONTEXT else context_of(request.query.get("subject", ""))

    def list_schemas(self, request: Request) -> list[dict[str, Any]]:
        prefix = request.query.get("subjectPrefix", ALL_CONTEXTS)
        found = [
            each
            for each in self._store.all_versions(deleted=request.flag("deleted"))
            if prefix == ALL_CONTEXTS or each.subject.startswith(prefix)
        ]
        if request.flag("latestOnly"):
            found = list({each.subject: each for each in found}.values())
        return _page(request, [_described(each) for each in found])

    def list_types(self, request: Request) -> list[str]:
        return sorted(MODULES)

    def list_contexts(self, request: Request) -> list[str]:
        return _page(request, self._store.contexts())

    # -- compatibility, settings ---------------------------------------------------------------------------------------------

    def test_version(self, request: Request, subject: str, version: str) -> dict[str, Any]:
        earlier = [self._store.version(subject, _number(version))]
        return self._tested(request, subject, earlier, self._store.level(subject).removesuffix("_TRANSITIVE"))

    def test_all(self, request: Request, subject: str) -> dict[str, Any]:
        earlier = self._store.versions(subject) if subject in self._store.subjects() else []
        return self._tested(request, subject, earlier, self._store.level(subject))

    def _tested(self, request: Request, subject: str, earlier: list[Version], level: str) -> dict[str, Any]:
        schema = self._store.canonical(_schema(_object(request.body)), request.flag("normalize"))
        found = self._store.compatible(schema, earlier, level)
        result: dict[str, Any] = {"is_compatible": not found.reasons}
        if request.flag("verbose"):
            result["messages"] = found.reasons + found.unchecked
        return result

    def get_level(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        store = self._store
        if subject != GLOBAL and subject not in store.levels and not request.flag("defaultToGlobal"):
            raise errors.no_subject_compatibility(subject)
        result: dict[str, Any] = {"compatibilityLevel": store.level(subject)}
        if subject in store.normalizing:
            result["normalize"] = store.normalizing[subject]
        return result

    def set_level(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        body = _object(request.body)
        unknown = [name for name in _UNSUPPORTED if body.get(name) is not None]
        if unknown:
            raise errors.bad_request(f"this registry does not know {', '.join(unknown)} in a config")
        if "normalize" in body:
            self._store.normalizing[subject] = body["normalize"] is True
        if body.get("compatibility") is not None or "normalize" not in body:
            self._store.set_level(subject, body.get("compatibility"))
        return {key: value for key, value in body.items() if value is not None}

    def delete_level(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._store.levels:
            raise errors.subject_not_found(subject)
        before = self._store.levels.pop(subject, DEFAULT_LEVEL)
        self._store.normalizing.pop(subject, None)
        return {"compatibilityLevel": before}

    def get_mode(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._store.modes and not request.flag("defaultToGlobal"):
            raise errors.no_subject_mode(subject)
        return {"mode": self._store.mode(subject)}

    def set_mode(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        self._store.set_mode(subject, _object(request.body).get("mode"), force=request.flag("force"))
        return {"mode": self._store.mode(subject)}

    def delete_mode(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._store.modes:
            raise errors.subject_not_found(subject)
        return {"mode": self._store.modes.pop(subject, DEFAULT_MODE)}

    # -- about itself --------------------------------------------------------------------------------------------------------

    def root(self, request: Request) -> dict[str, Any]:
        return {}

    def metadata_id(self, request: Request) -> dict[str, Any]:
        return {"scope": {"path": [], "clusters": {"schema-registry-cluster": "tidelog-testing"}}, "id": ""}


Serve = Callable[..., Any]


def _route(method: str, path: str, serve: Serve) -> tuple[str, re.Pattern[str], Serve]:
    pattern = re.sub(r"\{id\}", r"(?P<id>\\d+)", path)
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
    return method, re.compile(pattern), serve


_SUBJECT, _VERSION = "/subjects/{subject}", "/subjects/{subject}/versions/{version}"
_ROUTES = [
    _route("GET", "/", Api.root),
    _route("GET", "/v1/metadata/id", Api.metadata_id),
    _route("GET", "/subjects", Api.list_subjects),
    _route("POST", _SUBJECT, Api.look_up),
    _route("DELETE", _SUBJECT, Api.delete_subject),
    _route("GET", f"{_SUBJECT}/metadata", Api.with_metadata),
    _route("GET", f"{_SUBJECT}/versions", Api.list_versions),
    _route("POST", f"{_SUBJECT}/versions", Api.register),
    _route("GET", _VERSION, Api.get_version),
    _route("DELETE", _VERSION, Api.delete_version),
    _route("GET", f"{_VERSION}/schema", Api.get_version_schema),
    _route("GET", f"{_VERSION}/referencedby", Api.referenced_by),
    _route("GET", "/schemas", Api.list_schemas),
    _route("GET", "/schemas/types", Api.list_types),
    _route("GET", "/schemas/ids/{id}", Api.get_schema),
    _route("GET", "/schemas/ids/{id}/schema", Api.get_schema_text),
    _route("GET", "/schemas/ids/{id}/subjects", Api.subjects_of),
    _route("GET", "/schemas/ids/{id}/versions", Api.versions_of),
    _route("GET", "/schemas/guids/{guid}", Api.get_by_guid),
    _route("GET", "/contexts", Api.list_contexts),
    _route("POST", "/compatibility/subjects/{subject}/versions/{version}", Api.test_version),
    _route("POST", "/compatibility/subjects/{subject}/versions", Api.test_all),
    *(
        _route(method, path, serve)
        for kind, table in {
            "config": (("GET", Api.get_level), ("PUT", Api.set_level), ("DELETE", Api.delete_level)),
            "mode": (("GET", Api.get_mode), ("PUT", Api.set_mode), ("DELETE", Api.delete_mode)),
        }.items()
        for method, serve in table
        for path in (f"/{kind}", f"/{kind}/{{subject}}")
    ),
]


def _split_context(path: str) -> tuple[str, str]:
    """``/contexts/:.name:/subjects`` is ``/subjects`` of ``.name``."""
    match = re.fullmatch(r"/contexts/([^/]+)(/.*)", path)
    if match is None:
        return DEFAULT_CONTEXT, path.rstrip("/") or "/"
    return unquote(match[1]).strip(":") or DEFAULT_CONTEXT, match[2].rstrip("/") or "/"


def _number(text: str) -> int:
    if text in ("latest", "-1"):
        return -1
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise errors.invalid_version(text)
    return int(text)


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise errors.bad_request("the body is a JSON object")
    return body


def _schema(body: dict[str, Any]) -> Schema:
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


def _content(schema: Schema) -> dict[str, Any]:
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


def _described(version: Version) -> dict[str, Any]:
    about = {"subject": version.subject, "version": version.number, "id": version.id, "guid": version.schema.guid}
    return about | _content(version.schema) | ({"deleted": True} if version.deleted else {})


def _page(request: Request, found: list[Any]) -> list[Any]:
    offset, limit = max(0, request.number("offset", 0)), request.number("limit", -1)
    return found[offset:] if limit < 0 else found[offset : offset + limit]
