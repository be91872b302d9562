"""Messages as JSON, in the format of Kafka's tools: names as in its schemas, ids and bytes in base64, default tagged fields
omitted.

The type of a field (an id or plain bytes, its versions) is read from the definitions, which ship with the package.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from importlib import resources
from typing import Any

from tidelog.model.ids import uuid_to_text
from tidelog.protocol.schema import Field, Message, parse
from tidelog.protocol.structure import Structure


def message_json(value: Structure, name: str, version: int) -> str:
    """One line. ``name`` is the message's name in the definitions."""
    return json.dumps(as_json(value, name, version), separators=(",", ":"), ensure_ascii=False)


def as_json(value: Structure, name: str, version: int) -> dict[str, Any]:
    """Like ``message_json``, as plain Python values."""
    message = definitions()[name]
    return _structure(value, message.fields, message, version)


@cache
def definitions() -> dict[str, Message]:
    """Every message by name."""
    found: dict[str, Message] = {}
    for entry in sorted(resources.files("tidelog.protocol").joinpath("definitions").iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".txt"):
            found.update((message.name, message) for message in parse(entry.read_text(encoding="utf-8")))
    return found


def _structure(value: Structure, fields: tuple[Field, ...], message: Message, version: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for field in fields:
        if not _within(version, field.versions):
            continue
        content = getattr(value, field.attribute)
        if _within(version, field.tagged) and content == _default(field):
            continue
        result[field.name[0].lower() + field.name[1:]] = _value(content, field, message, version)
    return result


def _value(content: Any, field: Field, message: Message, version: int) -> Any:
    if content is None:
        return None
    if field.is_array:
        return [_element(each, field, message, version) for each in content]
    return _element(content, field, message, version)


def _element(content: Any, field: Field, message: Message, version: int) -> Any:
    if field.is_struct:
        return _structure(content, message.structs[field.element], message, version)
    if field.element == "uuid":
        return uuid_to_text(content)
    if field.element in {"bytes", "records"}:
        return base64.b64encode(content).decode("ascii")
    return content


def _default(field: Field) -> Any:
    if field.default == "null":
        return None
    if field.is_array:
        return []
    if field.element == "string":
        return field.default
    if field.element == "uuid":
        return bytes(16)
    if field.element == "bytes":
        return b""
    if field.element == "bool":
        return field.default == "true"
    if field.is_struct:
        return Ellipsis
    return int(field.default or "0", 0)


def _within(version: int, versions: tuple[int, int]) -> bool:
    return versions[0] <= version <= versions[1]
