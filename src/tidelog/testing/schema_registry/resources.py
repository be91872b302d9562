"""What the registry serves, by resource: each has its routes, and answers with values that become JSON, or bytes for a schema as
it is. All errors are RegistryError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.formats import MODULES
from tidelog.testing.schema_registry.requests import Request, content, described, version_number
from tidelog.testing.schema_registry.settings import (
    DEFAULT_CONTEXT,
    DEFAULT_LEVEL,
    DEFAULT_MODE,
    GLOBAL,
    Settings,
    context_of,
)
from tidelog.testing.schema_registry.store import Store, Version

ALL_CONTEXTS = ":*:"
_UNSUPPORTED = (
    "alias", "compatibilityGroup", "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet",
    "compatibilityPolicy",
)  # fmt: skip


class Route:
    """A method and a path, and what serves them: ``serve`` is called with the request and the parts of the path in braces."""

    def __init__(self, method: str, path: str, serve: Callable[..., Any]) -> None:
        pattern = re.sub(r"\{id\}", r"(?P<id>\\d+)", path)
        self.pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))
        self.method = method
        self.serve = serve


class Subjects:
    """Subjects and their versions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/subjects", self.list_subjects),
            Route("POST", "/subjects/{subject}", self.look_up),
            Route("DELETE", "/subjects/{subject}", self.delete_subject),
            Route("GET", "/subjects/{subject}/metadata", self.with_metadata),
            Route("GET", "/subjects/{subject}/versions", self.list_versions),
            Route("POST", "/subjects/{subject}/versions", self.register),
            Route("GET", "/subjects/{subject}/versions/{version}", self.get_version),
            Route("DELETE", "/subjects/{subject}/versions/{version}", self.delete_version),
            Route("GET", "/subjects/{subject}/versions/{version}/schema", self.get_version_schema),
            Route("GET", "/subjects/{subject}/versions/{version}/referencedby", self.referenced_by),
        ]

    def list_subjects(self, request: Request) -> list[str]:
        prefix = request.query.get("subjectPrefix", ALL_CONTEXTS)
        found = self._store.subjects(deleted=request.flag("deleted") or request.flag("deletedOnly"))
        if request.flag("deletedOnly"):
            alive = set(self._store.subjects())
            found = [name for name in found if name not in alive]
        return request.page([name for name in found if prefix == ALL_CONTEXTS or name.startswith(prefix)])

    def list_versions(self, request: Request, subject: str) -> list[int]:
        found = self._store.versions(subject, deleted=request.flag("deleted") or request.flag("deletedOnly"))
        return request.page([each.number for each in found if each.deleted or not request.flag("deletedOnly")])

    def register(self, request: Request, subject: str) -> dict[str, Any]:
        body = request.object()
        schema_id, number = body.get("id", -1), body.get("version", -1)
        if not isinstance(schema_id, int) or not isinstance(number, int):
            raise errors.bad_request("id and version are numbers")
        version = self._store.register(
            subject,
            request.schema(),
            schema_id=schema_id,
            number=number,
            normalize=request.flag("normalize"),
        )
        return {"id": version.id, "version": version.number, "guid": version.schema.guid} | content(version.schema)

    def look_up(self, request: Request, subject: str) -> dict[str, Any]:
        schema = request.schema()
        found = self._store.lookup(subject, schema, deleted=request.flag("deleted"), normalize=request.flag("normalize"))
        return described(found)

    def get_version(self, request: Request, subject: str, version: str) -> dict[str, Any]:
        return described(self._store.version(subject, version_number(version), deleted=request.flag("deleted")))

    def get_version_schema(self, request: Request, subject: str, version: str) -> bytes:
        return self._store.version(subject, version_number(version), deleted=request.flag("deleted")).schema.text.encode()

    def referenced_by(self, request: Request, subject: str, version: str) -> list[int]:
        return self._store.referenced_by(self._store.version(subject, version_number(version), deleted=True))

    def with_metadata(self, request: Request, subject: str) -> dict[str, Any]:
        """The latest version whose metadata has these properties. ``key`` and ``value`` may be given several times."""
        pairs = zip(request.query.get("key", "").split("\n"), request.query.get("value", "").split("\n"), strict=False)
        wanted = {key: value for key, value in pairs if key}
        for each in reversed(self._store.versions(subject, deleted=request.flag("deleted"))):
            properties = json.loads(each.schema.metadata or "{}").get("properties") or {}
            if wanted.items() <= properties.items():
                return described(each)
        raise errors.schema_not_found(f"with the metadata {wanted} under '{subject}'")

    def delete_subject(self, request: Request, subject: str) -> list[int]:
        return self._store.delete_subject(subject, permanent=request.flag("permanent"))

    def delete_version(self, request: Request, subject: str, version: str) -> int:
        return self._store.delete_version(subject, version_number(version), permanent=request.flag("permanent"))


class Schemas:
    """Schemas by id and by guid, their types and contexts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/schemas", self.list_schemas),
            Route("GET", "/schemas/types", self.list_types),
            Route("GET", "/schemas/ids/{id}", self.get_schema),
            Route("GET", "/schemas/ids/{id}/schema", self.get_schema_text),
            Route("GET", "/schemas/ids/{id}/subjects", self.subjects_of),
            Route("GET", "/schemas/ids/{id}/versions", self.versions_of),
            Route("GET", "/schemas/guids/{guid}", self.get_by_guid),
            Route("GET", "/contexts", self.list_contexts),
        ]

    def get_schema(self, request: Request, id: str) -> dict[str, Any]:
        context = self._context_of_id(request)
        schema = self._store.by_id(int(id), context)
        result = content(schema) | {"guid": schema.guid}
        if request.flag("fetchMaxId"):
            result["maxId"] = self._store.highest_id(context)
        return result

    def get_schema_text(self, request: Request, id: str) -> bytes:
        return self._store.by_id(int(id), self._context_of_id(request)).text.encode()

    def get_by_guid(self, request: Request, guid: str) -> dict[str, Any]:
        schema = self._store.by_guid(guid)
        return content(schema) | {"guid": schema.guid}

    def subjects_of(self, request: Request, id: str) -> list[str]:
        return request.page(sorted({each.subject for each in self._uses(request, int(id))}))

    def versions_of(self, request: Request, id: str) -> list[dict[str, Any]]:
        return request.page([{"subject": each.subject, "version": each.number} for each in self._uses(request, int(id))])

    def _uses(self, request: Request, schema_id: int) -> list[Version]:
        context = self._context_of_id(request)
        self._store.by_id(schema_id, context)
        return self._store.uses_of_id(schema_id, context, deleted=request.flag("deleted"))

    @staticmethod
    def _context_of_id(request: Request) -> str:
        """The context of an id comes from the subject or from the path."""
        context, _ = request.split_context()
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
        return request.page([described(each) for each in found])

    def list_types(self, request: Request) -> list[str]:
        return sorted(MODULES)

    def list_contexts(self, request: Request) -> list[str]:
        return request.page(self._store.contexts())


class Compatibility:
    """Tests of schemas that are not registered."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/compatibility/subjects/{subject}/versions/{version}", self.test_version),
            Route("POST", "/compatibility/subjects/{subject}/versions", self.test_all),
        ]

    def test_version(self, request: Request, subject: str, version: str) -> dict[str, Any]:
        earlier = [self._store.version(subject, version_number(version))]
        return self._tested(request, subject, earlier, self._store.settings.level(subject).removesuffix("_TRANSITIVE"))

    def test_all(self, request: Request, subject: str) -> dict[str, Any]:
        earlier = self._store.versions(subject) if subject in self._store.subjects() else []
        return self._tested(request, subject, earlier, self._store.settings.level(subject))

    def _tested(self, request: Request, subject: str, earlier: list[Version], level: str) -> dict[str, Any]:
        schema = self._store.canonical(request.schema(), request.flag("normalize"))
        found = self._store.compatible(schema, earlier, level)
        result: dict[str, Any] = {"is_compatible": not found.reasons}
        if request.flag("verbose"):
            result["messages"] = found.reasons + found.unchecked
        return result


class Configs:
    """Compatibility levels, with the setting to normalize."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def routes(self) -> list[Route]:
        return _of_setting("config", self.get, self.set, self.delete)

    def get(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._settings.levels and not request.flag("defaultToGlobal"):
            raise errors.no_subject_compatibility(subject)
        result: dict[str, Any] = {"compatibilityLevel": self._settings.level(subject)}
        if subject in self._settings.normalizing:
            result["normalize"] = self._settings.normalizing[subject]
        return result

    def set(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        body = request.object()
        unknown = [name for name in _UNSUPPORTED if body.get(name) is not None]
        if unknown:
            raise errors.bad_request(f"this registry does not know {', '.join(unknown)} in a config")
        if "normalize" in body:
            self._settings.normalizing[subject] = body["normalize"] is True
        if body.get("compatibility") is not None or "normalize" not in body:
            self._settings.set_level(subject, body.get("compatibility"))
        return {key: value for key, value in body.items() if value is not None}

    def delete(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._settings.levels:
            raise errors.subject_not_found(subject)
        before = self._settings.levels.pop(subject, DEFAULT_LEVEL)
        self._settings.normalizing.pop(subject, None)
        return {"compatibilityLevel": before}


class Modes:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._settings = store.settings

    def routes(self) -> list[Route]:
        return _of_setting("mode", self.get, self.set, self.delete)

    def get(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._settings.modes and not request.flag("defaultToGlobal"):
            raise errors.no_subject_mode(subject)
        return {"mode": self._settings.mode(subject)}

    def set(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        may_import = request.flag("force") or not self._store.holds(subject)
        self._settings.set_mode(subject, request.object().get("mode"), may_import=may_import)
        return {"mode": self._settings.mode(subject)}

    def delete(self, request: Request, subject: str = GLOBAL) -> dict[str, Any]:
        if subject != GLOBAL and subject not in self._settings.modes:
            raise errors.subject_not_found(subject)
        return {"mode": self._settings.modes.pop(subject, DEFAULT_MODE)}


class About:
    """The registry itself."""

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", self.root),
            Route("GET", "/v1/metadata/id", self.metadata_id),
        ]

    def root(self, request: Request) -> dict[str, Any]:
        return {}

    def metadata_id(self, request: Request) -> dict[str, Any]:
        return {"scope": {"path": [], "clusters": {"schema-registry-cluster": "tidelog-testing"}}, "id": ""}


def _of_setting(name: str, get: Callable[..., Any], put: Callable[..., Any], delete: Callable[..., Any]) -> list[Route]:
    """The routes of a setting of all, and of one subject."""
    return [
        Route(method, path, serve)
        for method, serve in (("GET", get), ("PUT", put), ("DELETE", delete))
        for path in (f"/{name}", f"/{name}/{{subject}}")
    ]
