"""Requests from plain dictionaries: a field that a version does not have is left out: one dictionary serves all versions."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tidelog.protocol
from tidelog.protocol.api_keys import API_FACTS
from tidelog.protocol.schema import Field, Message, parse

Fields = Mapping[str, Any]


@cache
def _definitions() -> dict[str, Message]:
    folder = Path(tidelog.protocol.__file__).parent / "definitions"
    return {message.name: message for path in sorted(folder.glob("*.txt")) for message in parse(path.read_text())}


def request(key: int, version: int, fields: Fields) -> Any:
    """The request. KeyError for a field that no version has."""
    definition = _definitions()[f"{API_FACTS[key].name}Request"]
    module = importlib.import_module(f"tidelog.protocol.messages.{definition.module}")

    def built(cls: Any, known: tuple[Field, ...], values: Fields) -> Any:
        if unknown := set(values) - {each.attribute for each in known}:
            raise KeyError(f"{definition.name} has no {', '.join(sorted(unknown))}")
        return cls(
            **{
                each.attribute: value_of(each, values[each.attribute])
                for each in known
                if each.attribute in values and each.versions[0] <= version <= each.versions[1]
            }
        )

    def value_of(field: Field, value: Any) -> Any:
        if value is None or not field.is_struct:
            return value
        cls = getattr(module, f"Request{field.element}", None) or getattr(module, field.element)
        known = definition.structs[field.element]
        return [built(cls, known, each) for each in value] if field.is_array else built(cls, known, value)

    return built(getattr(module, definition.name), definition.fields, fields)
