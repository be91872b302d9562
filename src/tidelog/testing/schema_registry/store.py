"""Registered schemas: schemas by id, versions by subject. Plain state, one request at a time.

An id belongs to one schema in one context; version numbers count up within a subject and are not reused after a deletion. A
version is deleted softly first (its id still resolves) and then for good.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.compatibility import Checked, check
from tidelog.testing.schema_registry.errors import InvalidSchema, RegistryError
from tidelog.testing.schema_registry.formats import Document, format_of
from tidelog.testing.schema_registry.settings import DEFAULT_CONTEXT, GLOBAL, Settings, context_of


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema under the name by which this one refers to it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The parts that identify a schema. Metadata and rules are kept as JSON text, for the client to act on."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None

    @property
    def guid(self) -> str:
        """An id computed from the schema: equal schemas have it in common in all registries of this kind."""
        return str(uuid.UUID(bytes=hashlib.md5(repr(self).encode(), usedforsecurity=False).digest()))


@dataclass(slots=True)
class Version:
    """A schema under a subject."""

    subject: str
    number: int
    id: int
    schema: Schema
    deleted: bool = False


@dataclass(slots=True)
class _Context:
    ids: dict[int, Schema] = field(default_factory=dict)
    by_schema: dict[Schema, int] = field(default_factory=dict)


class Store:
    """Methods raise RegistryError."""

    def __init__(self) -> None:
        self.settings = Settings()
        self._contexts: dict[str, _Context] = {DEFAULT_CONTEXT: _Context()}
        self._subjects: dict[str, dict[int, Version]] = {}
        self._highest: dict[str, int] = {}

    # -- looking -------------------------------------------------------------------------------------------------------------

    def contexts(self) -> list[str]:
        """Contexts with subjects, and the default one."""
        return sorted(self._contexts)

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Subjects with a version that is not deleted; with ``deleted`` all."""
        return sorted(
            name
            for name, versions in self._subjects.items()
            if versions and (deleted or not all(version.deleted for version in versions.values()))
        )

    def holds(self, subject: str) -> bool:
        """Whether there are schemas under the subject; with GLOBAL under any."""
        return bool(self.subjects()) if subject == GLOBAL else subject in self.subjects()

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """The versions in order. 40401 when there is none."""
        found = [each for _, each in sorted(self._subjects.get(subject, {}).items()) if deleted or not each.deleted]
        if not found:
            raise errors.subject_not_found(subject)
        return found

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version:
        """-1 is the latest."""
        found = self.versions(subject, deleted=deleted)
        if number == -1:
            return found[-1]
        for each in found:
            if each.number == number:
                return each
        raise errors.version_not_found(subject, number)

    def by_id(self, schema_id: int, context: str = DEFAULT_CONTEXT) -> Schema:
        """40403 for an id that was never assigned."""
        schema = self._contexts.get(context, _Context()).ids.get(schema_id)
        if schema is None:
            raise errors.schema_not_found(schema_id)
        return schema

    def by_guid(self, guid: str) -> Schema:
        """The schema with this guid, in any context."""
        for context in self._contexts.values():
            for schema in context.ids.values():
                if schema.guid == guid:
                    return schema
        raise errors.schema_not_found(guid)

    def highest_id(self, context: str = DEFAULT_CONTEXT) -> int:
        """The highest assigned id; 0 before the first."""
        return max(self._contexts.get(context, _Context()).ids, default=0)

    def uses_of_id(self, schema_id: int, context: str, *, deleted: bool = False) -> list[Version]:
        """The versions with that id."""
        return [
            version
            for version in self.all_versions(deleted=deleted)
            if version.id == schema_id and context_of(version.subject) == context
        ]

    def all_versions(self, *, deleted: bool = False) -> Iterable[Version]:
        """By subject, then by number."""
        for subject in sorted(self._subjects):
            for _, version in sorted(self._subjects[subject].items()):
                if deleted or not version.deleted:
                    yield version

    def referenced_by(self, version: Version) -> list[int]:
        """Ids of the schemas that refer to it."""
        return sorted(
            {
                other.id
                for other in self.all_versions()
                for reference in other.schema.references
                if (reference.subject, reference.version) == (version.subject, version.number)
            }
        )

    def lookup(self, subject: str, schema: Schema, *, deleted: bool = False, normalize: bool = False) -> Version:
        """The latest version with exactly this schema. 40401, 40403."""
        versions = self.versions(subject, deleted=deleted)
        wanted = self.canonical(schema, normalize or self.settings.normalizes(subject))
        for each in reversed(versions):
            if each.schema == wanted:
                return each
        raise errors.schema_not_found(f"of that content under '{subject}'")

    # -- registering ---------------------------------------------------------------------------------------------------------

    def canonical(self, schema: Schema, normalize: bool) -> Schema:
        """With the canonical text of the schema. 42201 when it is not a schema."""
        try:
            text = format_of(schema.kind).canonical(Document(schema.text, self._references(schema)), normalize)
        except InvalidSchema as problem:
            raise errors.invalid_schema(str(problem)) from problem
        return replace(schema, text=text)

    def register(
        self, subject: str, schema: Schema, *, schema_id: int = -1, number: int = -1, normalize: bool = False
    ) -> Version:
        """The version that has the schema, a new one if none does. 409 when the subject's level forbids it."""
        self.settings.check_writable(subject)
        mode = self.settings.mode(subject)
        if schema_id >= 0 and mode != "IMPORT":
            raise errors.not_permitted(f"An id is only taken in mode IMPORT; subject '{subject}' is in mode {mode}.")
        schema = self.canonical(schema, normalize or self.settings.normalizes(subject))
        known = [each for _, each in sorted(self._subjects.get(subject, {}).items())]
        for each in reversed(known):
            if each.schema == schema and not each.deleted and schema_id in (-1, each.id):
                return each
        if mode != "IMPORT":
            verdict = self.compatible(schema, [each for each in known if not each.deleted], self.settings.level(subject))
            if verdict.reasons:
                raise errors.incompatible(subject, verdict.reasons)
        given = self._give_id(context_of(subject), schema, schema_id)
        latest = max(self._highest.get(subject, 0), known[-1].number if known else 0)
        number = number if number > 0 and mode == "IMPORT" else latest + 1
        version = Version(subject, number, given, schema)
        self._subjects.setdefault(subject, {})[number] = version
        self._highest[subject] = max(latest, number)
        return version

    def _give_id(self, name: str, schema: Schema, wanted: int) -> int:
        context = self._contexts.setdefault(name, _Context())
        if wanted >= 0:
            if context.ids.get(wanted, schema) != schema:
                raise errors.not_permitted(f"Id {wanted} has another schema already.")
            given = wanted
        else:
            given = context.by_schema.get(schema) or self.highest_id(name) + 1
        context.ids[given] = schema
        context.by_schema.setdefault(schema, given)
        return given

    def compatible(self, schema: Schema, earlier: list[Version], level: str) -> Checked:
        """Compare a canonical schema with earlier versions."""
        return check(
            (schema.kind, Document(schema.text, self._references(schema))),
            [(each.number, each.schema.kind, Document(each.schema.text, self._references(each.schema))) for each in earlier],
            level,
        )

    def _references(self, schema: Schema) -> dict[str, str]:
        found: dict[str, str] = {}
        for reference in schema.references:
            try:
                target = self.version(reference.subject, reference.version, deleted=True).schema
            except RegistryError as problem:
                raise errors.invalid_schema(f"its reference {reference.name} leads nowhere: {problem.message}") from problem
            found |= {name: text for name, text in self._references(target).items() if name not in found}
            found[reference.name] = target.text
        return found

    # -- deleting ------------------------------------------------------------------------------------------------------------

    def delete_version(self, subject: str, number: int, *, permanent: bool = False) -> int:
        """Delete a version; its number. 42206 while another schema refers to it."""
        self.settings.check_writable(subject)
        version = self.version(subject, number, deleted=permanent or number != -1)
        if permanent and not version.deleted:
            raise errors.version_not_soft_deleted(subject, version.number)
        if version.deleted and not permanent:
            raise errors.version_soft_deleted(subject, version.number)
        self._not_referenced(version)
        if permanent:
            del self._subjects[subject][version.number]
        else:
            version.deleted = True
        return version.number

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject; the numbers of its versions."""
        self.settings.check_writable(subject)
        versions = self.versions(subject, deleted=True)
        alive = [each for each in versions if not each.deleted]
        if permanent and alive:
            raise errors.subject_not_soft_deleted(subject)
        if not alive and not permanent:
            raise errors.subject_soft_deleted(subject)
        for each in versions:
            self._not_referenced(each)
        for each in versions:
            each.deleted = True
        if permanent:
            del self._subjects[subject]
            self._highest.pop(subject, None)
        self.settings.forget(subject)
        return [each.number for each in (versions if permanent else alive)]

    def _not_referenced(self, version: Version) -> None:
        users = self.referenced_by(version)
        if users:
            raise errors.still_referenced(version.subject, version.number, users)
