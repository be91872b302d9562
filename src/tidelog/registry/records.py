"""Records of ``_schemas`` in Confluent's format: JSON keys whose bytes compaction compares, so that the order of properties
counts.

``write`` makes key and value of an entry, ``read`` the entry of a record. Unknown properties are ignored on reading; a record
that cannot be read is an ``Unreadable``, which the registry counts and skips. A null value deletes what the key names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

from tidelog.registry import contracts
from tidelog.registry.errors import RegistryError
from tidelog.registry.guid import guid_of
from tidelog.registry.model import AVRO, GLOBAL, MAX_VERSION, Reference, Schema, Version, compact

TENANT = "default"
_DECODER = json.JSONDecoder()
_CONFIG_TEXTS = frozenset({"alias", "compatibilityGroup", "compatibilityLevel", "compatibilityPolicy"})


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """A version, or its end for good (``version.schema`` is then without content, and ``gone`` True)."""

    version: Version
    gone: bool = False


@dataclass(frozen=True, slots=True)
class SubjectDeleted:
    """All versions of the subject up to this one are deleted softly."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SubjectCleared:
    """The subject's deleted versions are gone."""

    subject: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """The config of a subject or context, or of all (GLOBAL); None deletes it."""

    subject: str
    config: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ModeEntry:
    """The mode of a subject or context, or of all (GLOBAL); None deletes it."""

    subject: str
    mode: str | None


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A context is there, or is gone."""

    context: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class NoopEntry:
    """Written to find the end of the topic."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is none of these."""

    why: str


Entry = SchemaEntry | SubjectDeleted | SubjectCleared | ConfigEntry | ModeEntry | ContextEntry | NoopEntry


def write(entry: Entry) -> tuple[bytes, bytes | None]:
    """Key and value."""
    key, value = _written(entry)
    return compact(key).encode(), None if value is None else compact(value).encode()


def _written(entry: Entry) -> tuple[dict[str, Any], dict[str, Any] | None]:
    match entry:
        case SchemaEntry(version, gone):
            return _schema_key(version.subject, version.number), None if gone else _schema_value(version)
        case SubjectDeleted(subject, number):
            return _key("DELETE_SUBJECT", subject), {"subject": subject, "version": number}
        case SubjectCleared(subject):
            return _key("CLEAR_SUBJECT", subject), {"subject": subject}
        case ConfigEntry(subject, config):
            value = None if config is None else _named(subject) | config
            return _key("CONFIG", subject), value
        case ModeEntry(subject, mode):
            return _key("MODE", subject), None if mode is None else _named(subject) | {"mode": mode}
        case ContextEntry(context, gone):
            key = {"keytype": "CONTEXT", "tenant": TENANT, "context": context, "magic": 0}
            return key, None if gone else {"tenant": TENANT, "context": context}
        case NoopEntry():
            return {"keytype": "NOOP", "magic": 0}, None


def schema_key(subject: str, number: int) -> bytes:
    """Our key of a version, without the detour over a dictionary: each replayed key is compared with it."""
    return f'{{"keytype":"SCHEMA","subject":{encode_basestring(subject)},"version":{number},"magic":1}}'.encode()


def _schema_key(subject: str, number: int) -> dict[str, Any]:
    return {"keytype": "SCHEMA", "subject": subject, "version": number, "magic": 1}


def _key(kind: str, subject: str) -> dict[str, Any]:
    return {"keytype": kind, **_named(subject), "magic": 0}


def _named(subject: str) -> dict[str, Any]:
    return {} if subject == GLOBAL else {"subject": subject}


def _schema_value(version: Version) -> dict[str, Any]:
    return (
        {"subject": version.subject, "version": version.number, "id": version.id}
        | content(version.schema)
        | {"deleted": version.deleted}
    )


def content(schema: Schema) -> dict[str, Any]:
    """A schema's properties in records and answers, in their order; the type AVRO is left out."""
    result: dict[str, Any] = {}
    if schema.kind != AVRO:
        result["schemaType"] = schema.kind
    if schema.references:
        result["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    if schema.metadata is not None:
        result["metadata"] = schema.metadata_value
    if schema.rule_set is not None:
        result["ruleSet"] = schema.rules
    return result | {"schema": schema.text}


def read(key: bytes | None, value: bytes | None) -> Entry | Unreadable:
    """What a record says, whatever the order of its properties."""
    try:
        name = (key or b"").decode()
        text = None if value is None else value.decode()
        found = _read(_DECODER.decode(name), None if text is None else _DECODER.decode(text))
        if not isinstance(found, Unreadable) and not _is_plain(found, name, text or ""):
            write(found)  # what is in the state can be answered and written again
        if isinstance(found, SchemaEntry):
            guid_of(found.version.schema)
        return found
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, RegistryError) as problem:
        return Unreadable(f"{type(problem).__name__}: {problem}")


def _is_plain(entry: Entry, key: str, value: str) -> bool:
    """Whether a record can be written again without a try: texts and numbers alone, and no escape that makes half a character.

    It halves the time of a start over many schemas.
    """
    if not isinstance(entry, SchemaEntry) or "\\u" in key or "\\u" in value:
        return False
    return entry.version.schema.metadata is None and entry.version.schema.rule_set is None


def _read(key: dict[str, Any], value: dict[str, Any] | None) -> Entry | Unreadable:
    kind = key["keytype"]
    if kind == "NOOP":
        return NoopEntry()
    if kind == "CONTEXT":
        return ContextEntry(_text(key["context"]), value is None)
    subject = _text(key.get("subject") or GLOBAL)
    if kind == "CONFIG":
        return ConfigEntry(subject, None if value is None else _config(value))
    if kind == "MODE":
        return ModeEntry(subject, None if value is None else _text(value["mode"]).upper())
    if not subject:
        return Unreadable(f"a {kind} without a subject")
    if kind == "SCHEMA":
        return _read_schema(subject, _number(key["version"]), value)
    if kind == "DELETE_SUBJECT":
        return NoopEntry() if value is None else SubjectDeleted(subject, _number(value["version"]))
    if kind == "CLEAR_SUBJECT":
        return NoopEntry() if value is None else SubjectCleared(subject)
    return Unreadable(f"the key type {kind!r} is not known")


def _read_schema(subject: str, number: int, value: dict[str, Any] | None) -> Entry:
    if value is None:
        return SchemaEntry(Version(subject, number, -1, Schema(AVRO, "")), gone=True)
    references = tuple(
        Reference(_text(each["name"]), _text(each["subject"]), _number(each["version"])) for each in value.get("references") or ()
    )
    schema = Schema(
        _text(value.get("schemaType") or AVRO),
        _text(value["schema"]),
        references,
        contracts.metadata_text(value.get("metadata")),
        contracts.rule_set_text(value.get("ruleSet"), check=False),
    )
    return SchemaEntry(Version(subject, number, _number(value["id"]), schema, value.get("deleted") is True))


def _config(value: dict[str, Any]) -> dict[str, Any]:
    """The fields of a config. TypeError, AttributeError, RegistryError for values that could not be acted upon."""
    found = {name: each for name, each in value.items() if name != "subject" and each is not None}
    for name in _CONFIG_TEXTS & found.keys():
        _text(found[name])
    for kind in ("default", "override"):
        metadata = contracts.metadata_text(found.get(f"{kind}Metadata"))
        guid_of(Schema(AVRO, "", (), metadata, contracts.rule_set_text(found.get(f"{kind}RuleSet"), check=False)))
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _number(value: Any) -> int:
    """A whole number from -1 on, below 2^31; JSON that quotes it is understood."""
    number = int(value)
    if not -1 <= number <= MAX_VERSION:
        raise ValueError(f"{number} has more than 31 bits, or a sign")
    return number
