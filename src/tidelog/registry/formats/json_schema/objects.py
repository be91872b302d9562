"""Properties of JSON Schema's objects, in open, closed and partly open models.

Which schemas hold for a property is decided by its name: the one in ``properties`` and those of matching ``patternProperties``;
for other names ``additionalProperties``, which is true if absent. Each of the reader's has to follow from one of the writer's.

The policy LENIENT allows optional properties to be added to open models and removed from closed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidelog.registry.formats import Difference
from tidelog.registry.formats.json_schema import values
from tidelog.registry.formats.json_schema.documents import Node
from tidelog.registry.formats.json_schema.patterns import cost, matches
from tidelog.registry.formats.json_schema.rules import Rules

MAX_SHOWN = 200
"""Characters of a name in a path."""
KEYS = frozenset(
    {"properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties", "propertyNames"}
    | {"dependencies", "dependentRequired", "dependentSchemas"}
)


def refused(rules: Rules, reader: Node, writer: Node, path: str) -> list[Difference]:
    """What the reader refuses of the writer's objects."""
    if "object" not in values.types_of(writer.schema):
        return []
    check = _Objects(rules, reader, writer, path)
    return [*check.properties(), *check.others(), *check.required(), *check.dependent(), *check.counts()]


class _Model:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.named: dict[str, Any] = _object(schema.get("properties"))
        self.patterns: dict[str, Any] = _object(schema.get("patternProperties"))
        self.rest: Any = schema.get("additionalProperties", True)
        self.required = frozenset(each for each in _list(schema.get("required")) if isinstance(each, str))

    def demands(self, name: str) -> list[Any]:
        """The schemas that may hold for a property: all that a value has to satisfy to be accepted for sure."""
        matching = {pattern: matches(pattern, name) for pattern in self.patterns}
        found = [self.named[name]] if name in self.named else []
        found += [self.patterns[pattern] for pattern, match in matching.items() if match is not False]
        sure = name in self.named or True in matching.values()
        return found if sure else [*found, self.rest]

    def promises(self, name: str) -> list[Any]:
        """The schemas that hold for a property for sure."""
        matching = {pattern: matches(pattern, name) for pattern in self.patterns}
        found = [self.named[name]] if name in self.named else []
        found += [self.patterns[pattern] for pattern, match in matching.items() if match]
        return found or [True if None in matching.values() else self.rest]

    def covers(self, name: str) -> bool:
        """Whether the name is more than a rest."""
        return name in self.named or any(matches(pattern, name) is not False for pattern in self.patterns)


class _Objects:
    def __init__(self, rules: Rules, reader: Node, writer: Node, path: str) -> None:
        self._rules, self._reader, self._writer, self._path = rules, reader, writer, path
        self._mine, self._theirs = _Model(reader.schema), _Model(writer.schema)

    def _inner(self, mine: Any, theirs: list[Any], path: str) -> list[Difference]:
        """Nothing if ``mine`` follows from one of the writer's, else why not from the first."""
        found: list[Difference] = []
        for each in theirs:
            found = self._rules.refused(self._reader.at(mine), self._writer.at(each), path)
            if not found:
                return []
        return found

    def properties(self) -> Iterator[Difference]:
        """Properties that one of the two names."""
        mine, theirs = self._mine, self._theirs
        self._rules.spend(len(mine.named) // 20 + len(theirs.named) // 20)
        for name in sorted({*mine.named, *theirs.named}):
            self._rules.spend(sum(cost(each, name) for each in (*mine.patterns, *theirs.patterns)))
            where = f"{self._path}/properties/{name[:MAX_SHOWN]}"
            written = theirs.promises(name)
            faults = [fault for each in mine.demands(name) for fault in self._inner(each, written, where)]
            if not faults:
                continue
            optional = name not in mine.required and name not in theirs.required
            if theirs.covers(name) and mine.covers(name):
                yield from faults
            elif mine.covers(name):
                open_model = theirs.rest in (True, {})
                if not (open_model and self._rules.lenient and optional):
                    word = "ADDED_TO_OPEN_CONTENT_MODEL" if open_model else "ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                    why = f"{name} may be there with {'any value' if open_model else 'a value that is refused'}"
                    yield Difference(f"PROPERTY_{word}", where, why, name)
            else:
                closed = mine.rest is False
                if not (closed and self._rules.lenient and optional):
                    word = (
                        "REMOVED_FROM_CLOSED_CONTENT_MODEL" if closed else "REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                    )
                    yield Difference(f"PROPERTY_{word}", where, f"{name} may be there", name)

    def others(self) -> Iterator[Difference]:
        """Patterns, and properties that neither names."""
        mine, theirs = self._mine, self._theirs
        unnamed = [*([] if theirs.rest is False else [theirs.rest])]
        for pattern, schema in mine.patterns.items():
            at = f"{self._path}/patternProperties/{pattern[:MAX_SHOWN]}"
            if pattern in theirs.patterns:
                yield from self._inner(schema, [theirs.patterns[pattern]], at)
                continue
            for written in [*unnamed, *theirs.patterns.values()]:
                yield from self._inner(schema, [written], at)
        for pattern, written in theirs.patterns.items():
            if pattern not in mine.patterns:
                yield from self._inner(mine.rest, [written], f"{self._path}/patternProperties/{pattern[:MAX_SHOWN]}")
        faults = self._inner(mine.rest, [theirs.rest], f"{self._path}/additionalProperties")
        if faults:
            word = "ADDITIONAL_PROPERTIES_REMOVED" if mine.rest is False else "ADDITIONAL_PROPERTIES_NARROWED"
            yield Difference(
                word, f"{self._path}/additionalProperties", "other properties may be there with values that are refused"
            )
        if "propertyNames" in self._reader.schema:
            written = self._writer.schema.get("propertyNames", True)
            yield from self._inner(self._reader.schema["propertyNames"], [written], f"{self._path}/propertyNames")

    def required(self) -> Iterator[Difference]:
        """Properties that the reader demands. One with a default may be left out, as in Confluent's registry."""
        for name in sorted(self._mine.required - self._theirs.required):
            schema = self._mine.named.get(name)
            if not (isinstance(schema, dict) and "default" in schema):
                word = (
                    "REQUIRED_ATTRIBUTE_ADDED"
                    if name in self._theirs.named
                    else "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
                )
                yield Difference(word, f"{self._path}/required/{name}", f"{name} may be left out, and has no default", name)

    def dependent(self) -> Iterator[Difference]:
        """What the reader demands where a property is there."""
        (names, schemas), (their_names, their_schemas) = _dependent(self._reader.schema), _dependent(self._writer.schema)
        for name, needed in sorted(names.items()):
            missing = set(needed) - set(their_names.get(name, ())) - self._theirs.required
            if missing:
                word = "DEPENDENCY_ARRAY_EXTENDED" if name in their_names else "DEPENDENCY_ARRAY_ADDED"
                yield Difference(word, f"{self._path}/dependencies/{name}", f"{', '.join(sorted(missing))} may be left out", name)
        for name, schema in sorted(schemas.items()):
            at = f"{self._path}/dependencies/{name}"
            if name in their_schemas:
                yield from self._inner(schema, [their_schemas[name]], at)
            elif not self._rules.accepts(self._reader.at(schema), self._writer):
                yield Difference("DEPENDENCY_SCHEMA_ADDED", at, f"objects with {name} may be otherwise", name)

    def counts(self) -> Iterator[Difference]:
        """Numbers of properties."""
        for word, keyword, why in values.counts(self._reader.schema, self._writer.schema, "minProperties", "maxProperties"):
            yield Difference(word, f"{self._path}/{keyword}", why)


def _dependent(schema: dict[str, Any]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Needed names, and needed schemas, by the property that needs them."""
    mixed = _object(schema.get("dependencies"))
    names = _object(schema.get("dependentRequired")) | {key: each for key, each in mixed.items() if isinstance(each, list)}
    schemas = _object(schema.get("dependentSchemas")) | {key: each for key, each in mixed.items() if not isinstance(each, list)}
    return names, schemas


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
