"""Tags within schemas (``confluent:tags``, and the options of ``confluent/meta.proto``): which record or field has which."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from tidelog.registry.errors import InvalidSchema

TAGS = "confluent:tags"
ALL = "*"
MAX_PATH = 4096
MAX_PATHS = 16 << 20
"""Characters of all paths in an answer: a schema of 1 MiB could name one long path a thousand times."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A record or a field with its tags, each once. ``path``: in the notation of Confluent's catalog."""

    path: str
    is_field: bool
    tags: tuple[str, ...]


def tags_in(value: Any) -> tuple[str, ...]:
    """The tags in an attribute of a schema; none unless it is a list."""
    return tuple(dict.fromkeys(each for each in value if isinstance(each, str))) if isinstance(value, list) else ()


def check_path(path: str) -> None:
    """InvalidSchema for a path that many entities would repeat."""
    if len(path) > MAX_PATH:
        raise InvalidSchema(f"a path to a tag has more than {MAX_PATH} characters")


def described(found: Iterable[Tagged], wanted: Collection[str]) -> list[dict[str, Any]]:
    """Those with a wanted tag, ALL standing for any, as they are in answers. InvalidSchema when their paths are too long."""
    result = []
    size = 0
    for each in found:
        if ALL in wanted or not set(each.tags).isdisjoint(wanted):
            size += len(each.path)
            if size > MAX_PATHS:
                raise InvalidSchema(f"the paths to its tags have more than {MAX_PATHS} characters")
            entity = {"entityPath": each.path, "entityType": "sr_field" if each.is_field else "sr_record"}
            result.append({"schemaEntity": entity, "tags": [*each.tags]})
    return result
