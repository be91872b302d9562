"""Looking at subjects, versions, schemas and contexts: functions of the state. RegistryError for what is not there."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from tidelog.registry import errors
from tidelog.registry.levels import resolve_alias
from tidelog.registry.model import ALL_CONTEXTS, LATEST, Schema, Version, context_of, name_of, qualified
from tidelog.registry.state import State


def subjects(state: State, prefix: str, *, deleted: bool, deleted_only: bool) -> list[str]:
    """Names that begin with the prefix; ``:*:`` are those of all contexts. ``deleted_only``: with deleted versions alone."""
    found = state.subjects()
    if deleted_only:
        found = [each for each in found if not state.alive(each)]
    elif not deleted:
        found = [each for each in found if state.alive(each)]
    return [each for each in found if _begins(each, prefix)]


def _begins(subject: str, prefix: str) -> bool:
    """Whether a subject is in the prefix's context and begins like it; ``:*:`` means all contexts."""
    if prefix.startswith(ALL_CONTEXTS):
        return name_of(subject).startswith(prefix.removeprefix(ALL_CONTEXTS))
    return context_of(subject) == context_of(prefix) and name_of(subject).startswith(name_of(prefix))


def versions(state: State, subject: str, *, deleted: bool, deleted_only: bool = False) -> list[Version]:
    """Versions in order. 40401 when there is none."""
    there = state.versions(subject)
    if not there or (not deleted and not deleted_only and not state.alive(subject)):
        raise errors.subject_not_found(subject)
    if deleted_only:
        return [each for each in there if each.deleted]
    return [each for each in there if deleted or not each.deleted]


def version(state: State, subject: str, number: int, *, deleted: bool) -> Version:
    """A version; LATEST is the newest. 40401, 40402."""
    there = versions(state, subject, deleted=deleted)
    found = there[-1] if number == LATEST else next((each for each in there if each.number == number), None)
    if found is None:
        raise errors.version_not_found(subject, number)
    return found


def by_id(state: State, schema_id: int, subject: str, context: str) -> tuple[str, Schema, Version | None]:
    """The context in which an id was found, its schema, and a version that has it. 40403.

    With a subject: in its context, then in any with a subject of that name, then in ``context``.
    """
    wanted = qualified(context, subject) if subject else ""
    candidates = [context_of(wanted)] if subject else [context]
    if name_of(wanted):
        candidates += [context_of(each) for each in state.subjects_named(name_of(wanted))]
    for each in dict.fromkeys([*candidates, context]):
        schema = state.by_id(each, schema_id)
        if schema is None:
            continue
        places = state.places_of_id(each, schema_id)
        named = [place for place in places if name_of(place.subject) == name_of(wanted)] if subject else []
        if subject and each != candidates[0] and each != context and not named:
            continue
        alive = [place for place in named or places if not place.deleted]
        found = alive or named or places
        return each, schema, found[-1] if found else None
    raise errors.schema_not_found(schema_id)


def uses(state: State, schema_id: int, subject: str, context: str, *, deleted: bool) -> list[Version]:
    """The versions with an id, by subject and number. 40403."""
    found_in, _, _ = by_id(state, schema_id, subject, context)
    return [each for each in state.places_of_id(found_in, schema_id) if deleted or not each.deleted]


def by_guid(state: State, guid: str) -> tuple[str, Schema]:
    """A context that has the schema, and the schema. 40403."""
    found = state.ids_of_guid(guid.lower())
    schema = state.by_id(*found[0]) if found else None
    if schema is None:
        raise errors.schema_not_found(guid)
    return found[0][0], schema


def aliases(state: State, prefix: str) -> dict[str, list[str]]:
    """By subject, its aliases that begin with the prefix, sorted."""
    found: dict[str, list[str]] = {}
    for alias in sorted(each for each in state.configs if name_of(each) and _begins(each, prefix)):
        subject = resolve_alias(state, alias)
        if subject != alias:
            found.setdefault(subject, []).append(alias)
    return found


def all_versions(
    state: State, prefix: str, *, deleted: bool, latest_only: bool, rule_type: str = "", besides: Container[str] = ()
) -> list[Version]:
    """The versions of all subjects that begin with the prefix, or are in ``besides``; ``rule_type``: only those with a rule of
    it."""
    found: Iterable[Version] = (
        each
        for each in state.all_versions()
        if (deleted or not each.deleted) and (_begins(each.subject, prefix) or each.subject in besides)
    )
    if latest_only:
        found = {each.subject: each for each in found}.values()
    return [each for each in found if not rule_type or rule_type in _rule_types(each.schema)]


def _rule_types(schema: Schema) -> set[str]:
    if schema.rule_set is None:
        return set()
    return {rule.get("type", "") for rules in schema.rules.values() if isinstance(rules, list) for rule in rules}


def with_metadata(state: State, subject: str, wanted: Mapping[str, str], *, deleted: bool) -> Version:
    """The newest version whose metadata has these properties. 40401, 40402."""
    for each in reversed(versions(state, subject, deleted=deleted)):
        properties = each.schema.metadata_value.get("properties") or {}
        if wanted.items() <= properties.items():
            return each
    raise errors.version_not_found(subject, f"with the metadata {dict(wanted)}")


def contexts(state: State, prefix: str) -> list[str]:
    """Contexts whose names begin so."""
    return [each for each in state.contexts() if each.startswith(prefix)]


def context_in(text: str) -> str:
    """The context in a path: ``:.name:``, with the colons and the dot left out or not. 400 for a colon within the name."""
    name = text.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise errors.bad_request("the name of a context has no colon within")
    return name if name.startswith(".") else f".{name}"
