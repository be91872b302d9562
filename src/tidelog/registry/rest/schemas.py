"""Schemas by id and by GUID, their types, contexts, and what the registry is. All errors are RegistryError."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidelog.registry import deleting, reading
from tidelog.registry.guid import guid_of
from tidelog.registry.model import KINDS, Schema, Version
from tidelog.registry.outcome import Listed, Outcome
from tidelog.registry.records import content
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.routing import Route
from tidelog.registry.rest.subjects import Parts, prefix_of

MAX_LISTED = 1000
"""Schemas in one answer of ``GET /schemas``."""


class Schemas:
    """What is looked up by id needs no parser, unless a form is asked for."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._state = parts.state

    def routes(self) -> list[Route]:
        """The table."""
        return [
            Route("GET", "/schemas", self.list_schemas),
            Route("GET", "/schemas/types", self.list_types),
            Route("GET", "/schemas/ids/{id}", self.get_schema, heavy=True),
            Route("GET", "/schemas/ids/{id}/schema", self.get_text, heavy=True),
            Route("GET", "/schemas/ids/{id}/subjects", self.subjects_of),
            Route("GET", "/schemas/ids/{id}/versions", self.versions_of),
            Route("GET", "/schemas/guids/{guid}", self.get_by_guid, heavy=True),
            Route("GET", "/schemas/guids/{guid}/ids", self.ids_of_guid),
            Route("GET", "/contexts", self.list_contexts),
            Route("DELETE", "/contexts/{context}", self.delete_context, writes=True),
        ]

    def list_schemas(self, request: Request) -> Outcome:
        prefix = prefix_of(request)
        aliases = reading.aliases(self._state, prefix) if request.flag("aliases") else {}
        found = reading.all_versions(
            self._state,
            prefix,
            deleted=request.flag("deleted"),
            latest_only=request.flag("latestOnly"),
            rule_type=request.text("ruleType"),
            besides=aliases,
        )

        def described(version: Version) -> dict[str, Any]:
            names = aliases.get(version.subject)
            return self._parts.described(version) | ({"aliases": names} if names else {})

        return Outcome(Listed(request.page(found, cap=MAX_LISTED), described))

    def list_types(self, request: Request) -> Outcome:
        return Outcome(list(KINDS))

    def get_schema(self, request: Request, id: str) -> Outcome:
        context, schema, place = reading.by_id(self._state, int(id), request.text("subject"), request.context)
        answer = self._content(context, schema, request) | self._parts.more(request, schema, context)
        if place is not None:
            answer |= {"subject": place.subject, "version": place.number}
        answer["guid"] = guid_of(schema)
        if request.flag("fetchMaxId"):
            answer["maxId"] = self._state.highest_id(context)
        return Outcome(answer)

    def _content(self, context: str, schema: Schema, request: Request) -> dict[str, Any]:
        return content(schema) | {"schema": self._parts.library.formatted(schema, context, request.text("format"))}

    def get_text(self, request: Request, id: str) -> Outcome:
        context, schema, _ = reading.by_id(self._state, int(id), request.text("subject"), request.context)
        return Outcome(self._parts.library.formatted(schema, context, request.text("format")).encode())

    def get_by_guid(self, request: Request, guid: str) -> Outcome:
        context, schema = reading.by_guid(self._state, guid)
        return Outcome(self._content(context, schema, request) | {"guid": guid_of(schema)})

    def ids_of_guid(self, request: Request, guid: str) -> Outcome:
        reading.by_guid(self._state, guid)
        return Outcome([{"context": context, "id": each} for context, each in self._state.ids_of_guid(guid.lower())])

    def _uses(self, request: Request, id: str) -> list[Version]:
        return reading.uses(self._state, int(id), request.text("subject"), request.context, deleted=request.flag("deleted"))

    def subjects_of(self, request: Request, id: str) -> Outcome:
        return Outcome(request.page(dict.fromkeys(each.subject for each in self._uses(request, id))))

    def versions_of(self, request: Request, id: str) -> Outcome:
        found = self._uses(request, id)
        return Outcome([{"subject": each.subject, "version": each.number} for each in request.page(found)])

    def list_contexts(self, request: Request) -> Outcome:
        return Outcome(request.page(reading.contexts(self._state, request.text("contextPrefix"))))

    def delete_context(self, request: Request, context: str) -> Outcome:
        return deleting.delete_context(self._state, reading.context_in(context))


@dataclass(frozen=True, slots=True)
class About:
    """What the registry says of itself. ``cluster_id``: the Kafka cluster's, ``group``: the registries' own."""

    cluster_id: str
    version: str
    group: str = "schema-registry"

    def routes(self) -> list[Route]:
        """The table."""
        return [
            Route("GET", "/", self.root),
            Route("POST", "/", self.root),
            Route("GET", "/v1/metadata/id", self.ids),
            Route("GET", "/v1/metadata/version", self.of_version),
        ]

    def root(self, request: Request) -> Outcome:
        return Outcome({})

    def ids(self, request: Request) -> Outcome:
        clusters = {"kafka-cluster": self.cluster_id, "schema-registry-cluster": self.group}
        return Outcome({"scope": {"path": [], "clusters": clusters}, "id": ""})

    def of_version(self, request: Request) -> Outcome:
        return Outcome({"version": f"tidelog-{self.version}", "commitId": ""})
