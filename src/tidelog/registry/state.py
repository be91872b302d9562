"""What the records of ``_schemas`` add up to: versions by subject, schemas by id, configs, modes, contexts.

Invariants: ``apply`` is the only writer; replaying the same records gives the same state, also after compaction. An id belongs
to one schema in its context: a record with another text for a known id is skipped and counted. Ids count up from the highest
that any record named, gone or not, as long as the topic has it. A reference without a context is to a subject in the context of
the version that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidelog.registry import records
from tidelog.registry.guid import guid_of
from tidelog.registry.model import DEFAULT_CONTEXT, Schema, Version, context_of, name_of, qualified
from tidelog.registry.records import (
    ConfigEntry,
    ContextEntry,
    Entry,
    ModeEntry,
    SchemaEntry,
    SubjectCleared,
    SubjectDeleted,
    Unreadable,
)

Place = tuple[str, int]
"""Subject and version."""


@dataclass(slots=True)
class _Id:
    schema: Schema
    places: set[Place] = field(default_factory=set)


@dataclass(slots=True)
class _Context:
    ids: dict[int, _Id] = field(default_factory=dict)
    by_schema: dict[Schema, int] = field(default_factory=dict)
    highest: int = 0


class State:
    """Look-ups are dictionary accesses; none raises for what is not there."""

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, Version]] = {}
        self._contexts: dict[str, _Context] = {}
        self._known_contexts: set[str] = set()
        self._guids: dict[str, set[tuple[str, int]]] = {}
        self._referrers: dict[Place, set[Place]] = {}
        self._foreign_keys: dict[Place, set[bytes]] = {}
        self._configs: dict[str, dict[str, Any]] = {}
        self._modes: dict[str, str] = {}
        self.skipped = 0
        """Records that could not be read, or that gave a known id another schema."""

    # -- replaying -----------------------------------------------------------------------------------------------------------

    def replay(self, key: bytes | None, value: bytes | None) -> str | None:
        """Apply a record; why it was skipped, if it was."""
        entry = records.read(key, value)
        why = entry.why if isinstance(entry, Unreadable) else self.apply(entry)
        if why is not None:
            self.skipped += 1
        elif isinstance(entry, SchemaEntry) and key is not None:
            self._remember_key(entry, key)
        return why

    def _remember_key(self, entry: SchemaEntry, key: bytes) -> None:
        """Keys in another form than ours survive our tombstone in a compacted topic: they get one of their own."""
        place = (entry.version.subject, entry.version.number)
        if key == records.schema_key(*place):
            return
        forms = self._foreign_keys.setdefault(place, set())
        forms.discard(key) if entry.gone else forms.add(key)
        if not forms:
            del self._foreign_keys[place]

    def apply(self, entry: Entry) -> str | None:
        """Apply an entry; why it was skipped, if it was."""
        match entry:
            case SchemaEntry(version, True):
                self._remove(version.subject, version.number)
            case SchemaEntry(version, False):
                return self._put(version)
            case SubjectDeleted(subject, highest):
                versions = self._subjects.get(subject, {})
                for number, version in versions.items():
                    if number <= highest and not version.deleted:
                        versions[number] = replace(version, deleted=True)
            case SubjectCleared(subject):
                for version in list(self._subjects.get(subject, {}).values()):
                    if version.deleted:
                        self._remove(subject, version.number)
            case ConfigEntry(subject, config):
                if config is None:
                    self._configs.pop(subject, None)
                else:
                    self._configs[subject] = config
            case ModeEntry(subject, mode):
                if mode is None:
                    self._modes.pop(subject, None)
                else:
                    self._modes[subject] = mode
            case ContextEntry(context, gone):
                (self._known_contexts.discard if gone else self._known_contexts.add)(context)
        return None

    def _put(self, version: Version) -> str | None:
        name, place = context_of(version.subject), (version.subject, version.number)
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = _Context()
        known = context.ids.get(version.id)
        if known is not None and known.schema != version.schema and known.places - {place}:
            return f"id {version.id} of {version.subject}, version {version.number}, has another schema already"
        self._remove(*place)
        found = context.ids.get(version.id)
        if found is None:
            found = context.ids[version.id] = _Id(version.schema)
        found.places.add(place)
        context.by_schema.setdefault(version.schema, version.id)
        context.highest = max(context.highest, version.id)
        self._guids.setdefault(guid_of(version.schema), set()).add((name, version.id))
        for at in _targets(version.schema, name):
            self._referrers.setdefault(at, set()).add(place)
        self._subjects.setdefault(version.subject, {})[version.number] = version
        return None

    def _remove(self, subject: str, number: int) -> None:
        versions = self._subjects.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        if not versions:
            del self._subjects[subject]
        name, place = context_of(subject), (subject, number)
        context = self._contexts[name]
        known = context.ids[version.id]
        known.places.discard(place)
        if not known.places:
            del context.ids[version.id]
            if context.by_schema.get(version.schema) == version.id:
                del context.by_schema[version.schema]
            guid = guid_of(version.schema)
            self._guids[guid].discard((name, version.id))
            if not self._guids[guid]:
                del self._guids[guid]
        for at in _targets(version.schema, name):
            self._referrers[at].discard(place)
            if not self._referrers[at]:
                del self._referrers[at]

    # -- looking -------------------------------------------------------------------------------------------------------------

    def versions(self, subject: str) -> list[Version]:
        """All versions, deleted ones too, in order."""
        return [version for _, version in sorted(self._subjects.get(subject, {}).items())]

    def version(self, subject: str, number: int) -> Version | None:
        """A version, deleted or not."""
        return self._subjects.get(subject, {}).get(number)

    def subjects(self) -> list[str]:
        """Subjects with a version, deleted or not, sorted."""
        return sorted(self._subjects)

    def alive(self, subject: str) -> bool:
        """Whether a version of the subject is not deleted."""
        return any(not version.deleted for version in self._subjects.get(subject, {}).values())

    def contexts(self) -> list[str]:
        """The default context, those with subjects, and those that were made."""
        return sorted({DEFAULT_CONTEXT, *self._known_contexts, *map(context_of, self._subjects)})

    def context_is_known(self, context: str) -> bool:
        """Whether a record says that the context is there; the default one always is."""
        return context == DEFAULT_CONTEXT or context in self._known_contexts

    def by_id(self, context: str, schema_id: int) -> Schema | None:
        """The schema with the id."""
        found = self._context(context).ids.get(schema_id)
        return None if found is None else found.schema

    def places_of_id(self, context: str, schema_id: int) -> list[Version]:
        """The versions with the id, deleted ones too, by subject and number."""
        found = self._context(context).ids.get(schema_id)
        return [] if found is None else [self._subjects[subject][number] for subject, number in sorted(found.places)]

    def id_of(self, context: str, schema: Schema) -> int | None:
        """The id that the schema has in the context."""
        return self._context(context).by_schema.get(schema)

    def highest_id(self, context: str) -> int:
        """The highest id that any record gave in the context; 0 before the first."""
        return self._context(context).highest

    def ids_of_guid(self, guid: str) -> list[tuple[str, int]]:
        """(context, id) of the schema with the GUID, sorted."""
        return sorted(self._guids.get(guid, ()))

    def referrers(self, subject: str, number: int) -> list[Version]:
        """The versions that refer to this one, deleted ones too."""
        return [self._subjects[name][each] for name, each in sorted(self._referrers.get((subject, number), ()))]

    def foreign_keys(self, subject: str, number: int) -> list[bytes]:
        """Keys of the version in other forms than ours."""
        return sorted(self._foreign_keys.get((subject, number), ()))

    def all_versions(self) -> Iterator[Version]:
        """All versions, deleted ones too, by subject and number."""
        for subject in self.subjects():
            yield from self.versions(subject)

    def subjects_named(self, name: str) -> Iterator[str]:
        """The subjects with this name in any context, sorted."""
        return (subject for subject in self.subjects() if name_of(subject) == name)

    @property
    def configs(self) -> Mapping[str, dict[str, Any]]:
        """Configs by subject, context or GLOBAL."""
        return self._configs

    @property
    def modes(self) -> Mapping[str, str]:
        """Modes by subject, context or GLOBAL."""
        return self._modes

    def _context(self, name: str) -> _Context:
        return self._contexts.get(name) or _Context()


def _targets(schema: Schema, context: str) -> set[Place]:
    """What a schema refers to, each once, though it may have several names for it."""
    return {(qualified(context, each.subject), each.version) for each in schema.references}
