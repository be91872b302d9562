"""Whether a registry has the schemas of a group's next records."""

from __future__ import annotations

from dataclasses import replace

from tidelog.cli.refusal import CommandFailed
from tidelog.console.group_facts import Sample
from tidelog.console.web.registry import Registry, Unreachable
from tidelog.model.errors import ConfigError


def registry_at(url: str) -> Registry:
    """The registry at this address. CommandFailed."""
    try:
        return Registry(url)
    except ConfigError as problem:
        raise CommandFailed(f"--schema-registry: {problem}") from None


def with_schemas(found: Sample, registry: Registry) -> Sample:
    """The sample with the schemas that the registry lacks; ``unread`` says when it does not answer."""
    partitions = dict(found.partitions)
    lacks: dict[int, bool] = {}
    for at, part in found.partitions.items():
        if part.next is None or part.next.schema_id is None:
            continue
        schema_id = part.next.schema_id
        try:
            if schema_id not in lacks:
                lacks[schema_id] = registry.lacks(schema_id)
        except Unreachable as problem:
            return replace(found, unread=(*found.unread, str(problem)))
        partitions[at] = replace(part, next=replace(part.next, schema_missing=lacks[schema_id]))
    return replace(found, partitions=partitions)
