"""Tags of records and fields in an Avro schema, those of types that references define included."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.registry.formats.avro.types import Type
from tidelog.registry.formats.tagging import TAGS, Tagged, tags_in


def tagged(schema: Type) -> Iterator[Tagged]:
    """In the order of the schema; a record is looked at where it is mentioned first. Paths begin with its full name."""
    seen: set[str] = set()
    waiting: list[Iterator[Tagged | Type]] = [iter([schema])]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
        elif isinstance(found, Tagged):
            if found.tags:
                yield found
        elif found.kind not in ("record", "error"):
            waiting.append(iter(found.inner))
        elif found.full_name not in seen:
            seen.add(found.full_name)
            waiting.append(_record(found))


def _record(record: Type) -> Iterator[Tagged | Type]:
    yield Tagged(record.full_name, False, tags_in(record.props.get(TAGS)))
    for each in record.fields:
        yield Tagged(f"{record.full_name}.{each.name}", True, tags_in(each.props.get(TAGS)))
        yield each.type
