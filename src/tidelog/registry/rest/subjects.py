"""Subjects and their versions, and compatibility tests. All errors are RegistryError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidelog.registry import deleting, reading
from tidelog.registry.guid import guid_of
from tidelog.registry.levels import resolve_alias
from tidelog.registry.library import Library
from tidelog.registry.model import ALL_CONTEXTS, DEFAULT_CONTEXT, Schema, Version, context_of, qualified
from tidelog.registry.outcome import Outcome
from tidelog.registry.records import content
from tidelog.registry.registering import Registering
from tidelog.registry.rest.requests import Request, integer, version_number
from tidelog.registry.rest.routing import Route
from tidelog.registry.state import State

QUALIFIED = "qualified"
"""The form of references whose subjects name their context."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What routes work on."""

    state: State
    library: Library
    registering: Registering

    def described(self, version: Version, form: str = "") -> dict[str, Any]:
        """A version in an answer."""
        about = {
            "subject": version.subject,
            "version": version.number,
            "id": version.id,
            "guid": guid_of(version.schema),
        }
        return about | self.registering.content(version, form) | ({"deleted": True} if version.deleted else {})

    def more(self, request: Request, schema: Schema, context: str) -> dict[str, Any]:
        """What the parameters ``findTags`` and ``referenceFormat`` ask for besides, or otherwise."""
        found: dict[str, Any] = {}
        wanted = {tag for each in request.query.get("findTags", ()) for tag in each.split(",")}
        tags = self.library.tagged(schema, context, wanted) if wanted else []
        if tags:
            found["schemaTags"] = tags
        if schema.references and context != DEFAULT_CONTEXT and request.text("referenceFormat") == QUALIFIED:
            subjects = [replace(each, subject=qualified(context, each.subject)) for each in schema.references]
            found["references"] = content(replace(schema, references=tuple(subjects)))["references"]
        return found


class Subjects:
    """``aliased`` routes act on the subject that an alias stands for."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._state = parts.state

    def routes(self) -> list[Route]:
        """The table."""
        versions, one = "/subjects/{subject}/versions", "/subjects/{subject}/versions/{version}"
        tests = "/compatibility/subjects/{subject}/versions"
        return [
            Route("GET", "/subjects", self.list_subjects),
            Route("POST", "/subjects/{subject}", self._aliased(self.look_up), heavy=True),
            Route("DELETE", "/subjects/{subject}", self._aliased(self.delete_subject), writes=True),
            Route("GET", "/subjects/{subject}/metadata", self._aliased(self.with_metadata), heavy=True),
            Route("GET", versions, self._aliased(self.list_versions)),
            Route("POST", versions, self._aliased(self.register), heavy=True, writes=True),
            Route("GET", one, self._aliased(self.get_version), heavy=True),
            Route("DELETE", one, self._aliased(self.delete_version), writes=True),
            Route("GET", one + "/schema", self._aliased(self.get_text), heavy=True),
            Route("GET", one + "/referencedby", self._aliased(self.referenced_by)),
            Route("POST", tests, self._aliased(self.test_all), heavy=True),
            Route("POST", tests + "/{version}", self._aliased(self.test_version), heavy=True),
        ]

    def _aliased(self, serve: Callable[..., Outcome]) -> Callable[..., Outcome]:
        def on_target(request: Request, subject: str, *others: str) -> Outcome:
            return serve(request, resolve_alias(self._state, subject), *others)

        return on_target

    def list_subjects(self, request: Request) -> Outcome:
        deleted, only = request.flag("deleted"), request.flag("deletedOnly")
        return Outcome(request.page(reading.subjects(self._state, prefix_of(request), deleted=deleted, deleted_only=only)))

    def list_versions(self, request: Request, subject: str) -> Outcome:
        found = reading.versions(self._state, subject, deleted=request.flag("deleted"), deleted_only=request.flag("deletedOnly"))
        return Outcome(request.page(each.number for each in found))

    def register(self, request: Request, subject: str) -> Outcome:
        schema, body = request.schema()
        return self._parts.registering.register(
            subject,
            schema,
            schema_id=integer(body, "id"),
            number=integer(body, "version"),
            normalize=request.flag("normalize"),
            form=request.text("format"),
        )

    def look_up(self, request: Request, subject: str) -> Outcome:
        schema, _ = request.schema()
        found = self._parts.registering.look_up(
            subject, schema, deleted=request.flag("deleted"), normalize=request.flag("normalize")
        )
        return Outcome(self._parts.described(found, request.text("format")))

    def _version(self, request: Request, subject: str, version: str) -> Version:
        return reading.version(self._state, subject, version_number(version), deleted=request.flag("deleted"))

    def get_version(self, request: Request, subject: str, version: str) -> Outcome:
        found = self._version(request, subject, version)
        answer = self._parts.described(found, request.text("format"))
        return Outcome(answer | self._parts.more(request, found.schema, context_of(found.subject)))

    def get_text(self, request: Request, subject: str, version: str) -> Outcome:
        found = self._version(request, subject, version)
        return Outcome(self._parts.library.formatted(found.schema, context_of(subject), request.text("format")).encode())

    def referenced_by(self, request: Request, subject: str, version: str) -> Outcome:
        target = reading.version(self._state, subject, version_number(version), deleted=True)
        users = self._state.referrers(target.subject, target.number)
        return Outcome(request.page(sorted({each.id for each in users if request.flag("deleted") or not each.deleted})))

    def with_metadata(self, request: Request, subject: str) -> Outcome:
        wanted = dict(zip(request.query.get("key", ()), request.query.get("value", ()), strict=False))
        found = reading.with_metadata(self._state, subject, wanted, deleted=request.flag("deleted"))
        return Outcome(self._parts.described(found, request.text("format")))

    def delete_subject(self, request: Request, subject: str) -> Outcome:
        return deleting.delete_subject(self._state, subject, permanent=request.flag("permanent"))

    def delete_version(self, request: Request, subject: str, version: str) -> Outcome:
        return deleting.delete_version(self._state, subject, version_number(version), permanent=request.flag("permanent"))

    def test_all(self, request: Request, subject: str) -> Outcome:
        return self._tested(request, subject, None)

    def test_version(self, request: Request, subject: str, version: str) -> Outcome:
        return self._tested(request, subject, version_number(version))

    def _tested(self, request: Request, subject: str, number: int | None) -> Outcome:
        schema, _ = request.schema()
        return self._parts.registering.compatibility(
            subject, schema, number, normalize=request.flag("normalize"), verbose=request.flag("verbose")
        )


def prefix_of(request: Request) -> str:
    """``subjectPrefix``, in the context of the path; without either, all contexts."""
    given = request.text("subjectPrefix", ALL_CONTEXTS if request.context == DEFAULT_CONTEXT else "")
    return given if given.startswith(ALL_CONTEXTS) else qualified(request.context, given)
