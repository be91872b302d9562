"""Schemas, versions of subjects, and the names of subjects and contexts.

A subject ``:.context:name`` is in the context ``.context``, any other in the default one, ``.``; ids belong to a context. The
subject ``:.context:`` without a name stands for the context itself where settings are meant.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
KINDS = (AVRO, JSON, PROTOBUF)
DEFAULT_CONTEXT = "."
GLOBAL = ""
"""Stands for a subject: the settings of subjects and contexts without their own."""
GLOBAL_CONTEXT = ":.__GLOBAL:"
"""Settings under this name come after those of a context, and before the default."""
ALL_CONTEXTS = ":*:"
LATEST = -1
MAX_VERSION = (1 << 31) - 1
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema, under the name by which this one refers to it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The parts that identify a schema. ``metadata`` and ``rule_set`` are JSON in the order of ``contracts``; None if absent."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None

    @property
    def metadata_value(self) -> dict[str, Any]:
        """The metadata as values; empty without."""
        found: dict[str, Any] = json.loads(self.metadata) if self.metadata else {}
        return found

    @property
    def rules(self) -> dict[str, Any]:
        """The rule set as values; empty without."""
        found: dict[str, Any] = json.loads(self.rule_set) if self.rule_set else {}
        return found


@dataclass(frozen=True, slots=True)
class Version:
    """A schema under a subject. ``deleted``: softly, so that its id still resolves."""

    subject: str
    number: int
    id: int
    schema: Schema
    deleted: bool = False


def compact(value: Any) -> str:
    """JSON without blanks, as the registry's records and answers have it."""
    return _ENCODER.encode(value)


def context_of(subject: str) -> str:
    """The context of a subject, or of a context written as ``:.context:``."""
    if subject.startswith(":."):
        return subject[1:].partition(":")[0]
    return DEFAULT_CONTEXT


def name_of(subject: str) -> str:
    """The subject without its context; empty for a context itself."""
    return subject[1:].partition(":")[2] if subject.startswith(":.") else subject


def qualified(context: str, name: str) -> str:
    """The subject in a context; names that carry a context keep theirs."""
    if name.startswith(":."):
        context, name = context_of(name), name_of(name)
    return name if context == DEFAULT_CONTEXT else f":{context}:{name}"


def valid_subject(subject: str) -> bool:
    """Whether schemas may be registered under the subject: a name without control characters that means nothing else."""
    name = name_of(subject)
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return bool(name) and name not in ("__GLOBAL", "__EMPTY") and name.isprintable() and context_of(subject) != ".__GLOBAL"
