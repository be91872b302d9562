"""Deleting versions, subjects and contexts: softly first, then for good. Functions of the state that return an ``Outcome``.

What other schemas refer to stays. When no version of a subject is left alive, its own config and mode go too. RegistryError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.registry import errors
from tidelog.registry.levels import check_writable
from tidelog.registry.model import DEFAULT_CONTEXT, LATEST, Version, context_of
from tidelog.registry.outcome import Outcome
from tidelog.registry.records import ConfigEntry, ContextEntry, Entry, ModeEntry, SchemaEntry, SubjectDeleted
from tidelog.registry.state import State


def delete_version(state: State, subject: str, number: int, *, permanent: bool) -> Outcome:
    """40401, 40402, 40406, 40407, 42205, 42206; the answer is the number."""
    check_writable(state, subject)
    versions = state.versions(subject)
    if not versions:
        raise errors.subject_not_found(subject)
    candidates = [each for each in versions if permanent or not each.deleted] if number == LATEST else versions
    found = next((each for each in reversed(candidates) if number in (LATEST, each.number)), None)
    if found is None:
        raise errors.version_not_found(subject, number)
    if permanent and not found.deleted:
        raise errors.version_not_soft_deleted(subject, found.number)
    if found.deleted and not permanent:
        raise errors.version_soft_deleted(subject, found.number)
    _not_referenced(state, [found], permanent=permanent)
    entries: list[Entry] = [SchemaEntry(found, gone=True) if permanent else SchemaEntry(replace(found, deleted=True))]
    if all(each.deleted or each is found for each in versions):
        entries += _settings(state, subject)
    foreign = state.foreign_keys(subject, found.number) if permanent else ()
    return Outcome(found.number, tuple(entries), tuple(foreign))


def delete_subject(state: State, subject: str, *, permanent: bool) -> Outcome:
    """40401, 40404, 40405, 42205, 42206; the answer are the numbers of its versions."""
    check_writable(state, subject)
    versions = state.versions(subject)
    if not versions:
        raise errors.subject_not_found(subject)
    alive = [each for each in versions if not each.deleted]
    if permanent and alive:
        raise errors.subject_not_soft_deleted(subject)
    if not alive and not permanent:
        raise errors.subject_soft_deleted(subject)
    _not_referenced(state, versions if permanent else alive, permanent=permanent)
    if not permanent:
        return Outcome([each.number for each in alive], (SubjectDeleted(subject, alive[-1].number), *_settings(state, subject)))
    entries = [SchemaEntry(each, gone=True) for each in reversed(versions)]
    foreign = [key for each in versions for key in state.foreign_keys(subject, each.number)]
    return Outcome([each.number for each in versions], (*entries, *_settings(state, subject)), tuple(foreign))


def delete_context(state: State, context: str) -> Outcome:
    """42211 for one with subjects, also deleted ones; there is no answer's body."""
    if context == DEFAULT_CONTEXT or any(context_of(subject) == context for subject in state.subjects()):
        raise errors.context_not_empty(context)
    return Outcome(None, (ContextEntry(context, gone=True),) if state.context_is_known(context) else ())


def _not_referenced(state: State, versions: Sequence[Version], *, permanent: bool) -> None:
    """42206 while a version is referred to by one that is not among them; deleted ones only count for a permanent deletion."""
    own = {(each.subject, each.number) for each in versions}
    for each in versions:
        users = [
            user
            for user in state.referrers(each.subject, each.number)
            if (user.subject, user.number) not in own and (permanent or not user.deleted)
        ]
        if users:
            raise errors.still_referenced(each.subject, each.number, {user.id for user in users})


def _settings(state: State, subject: str) -> list[Entry]:
    found: list[Entry] = [ModeEntry(subject, None)] if subject in state.modes else []
    return found + ([ConfigEntry(subject, None)] if subject in state.configs else [])
