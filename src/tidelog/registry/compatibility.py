"""Compatibility levels: which earlier versions count, which side reads the other's data, and what is said when it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.registry.formats import Difference, Document, format_of

NONE = "NONE"
TRANSITIVE = "_TRANSITIVE"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema with its references. ``number``: its version; 0 for the one that is tested."""

    kind: str
    document: Document
    number: int = 0


def check(new: Candidate, earlier: Sequence[Candidate], level: str, *, lenient: bool = False) -> list[str]:
    """Compare a schema with the latest of the earlier ones, or with all if the level is transitive, newest first.

    Returns messages about the first that is incompatible, in the form of Confluent's registry; none if all are compatible.
    """
    if level == NONE:
        return []
    against = list(earlier) if level.endswith(TRANSITIVE) else list(earlier[-1:])
    for old in reversed(against):
        found = _differences(new, old, level, lenient)
        if found:
            return [
                *(_message(each) for each in found),
                f"{{oldSchemaVersion: {old.number}}}",
                f"{{oldSchema: '{old.document.text}'}}",
                f"{{compatibility: '{level}'}}",
            ]
    return []


def _differences(new: Candidate, old: Candidate, level: str, lenient: bool) -> list[Difference]:
    if new.kind != old.kind:
        return [Difference("SCHEMA_TYPE_CHANGED", "/", f"version {old.number} is {old.kind}, this one is {new.kind}", new.kind)]
    if new.document == old.document:
        return []
    checker = format_of(new.kind)
    found: list[Difference] = []
    if level.startswith(("BACKWARD", "FULL")):
        found += checker.compare(new.document, old.document, lenient=lenient)
    if level.startswith(("FORWARD", "FULL")):
        found += checker.compare(old.document, new.document, lenient=lenient)
    return found


def _message(each: Difference) -> str:
    return f"{{errorType:'{each.kind}', description:'{each.description} (at {each.path})', additionalInfo:'{each.info}'}}"
