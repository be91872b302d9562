"""Whether a reader's JSON schema accepts all that a writer's does, keyword by keyword.

Both schemas are conjunctions: their own keywords, and the branches of ``allOf``. Each part of the reader's has to follow from
one part of the writer's. An ``anyOf`` or ``oneOf`` of the reader's follows if one branch does, or if each branch of the
writer's has one; where the writer has one and the reader has not, all its branches count.

Schemas may contain themselves: a pair in progress counts as accepted. Where such a pair turns out not to be, the comparison
runs again with what it learned. The number of steps is bounded: what takes more is incompatible, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tidelog.registry.formats import Difference
from tidelog.registry.formats.json_schema import arrays, objects, values
from tidelog.registry.formats.json_schema.combined import COMBINED_KEYS, Combined
from tidelog.registry.formats.json_schema.documents import MAX_HOPS, Node, Pool

MAX_STEPS = 50_000
MAX_PATH = 500
"""Characters of a path in a difference; names may be as long as a schema."""
_CONDITION = frozenset({"if", "then", "else"})
_OPAQUE = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
"""Compared by equality only."""
Rule = Callable[[values.Schema, values.Schema], Iterator[values.Fault]]
_GROUPS: tuple[tuple[frozenset[str], Rule], ...] = (
    (values.VALUE_KEYS, values.values),
    (values.NUMBER_KEYS, values.numbers),
    (values.STRING_KEYS, values.strings),
)
Pair = tuple[int, int]


class TooManySteps(Exception):
    """The comparison was given up."""


def differences(reader: Pool, writer: Pool, *, lenient: bool) -> list[Difference]:
    """Why the reader's schema refuses something that the writer's accepts; empty when it accepts all."""
    failed: set[Pair] = set()
    steps = 0
    try:
        while True:
            check = Comparison(failed, lenient, steps)
            found = check.refused(reader.root, writer.root, "#")
            if check.failed == failed:
                return found
            failed, steps = check.failed, check.steps
    except (TooManySteps, RecursionError):
        why = f"the schemas are too entangled to compare in {MAX_STEPS} steps"
        return [Difference("COMPARISON_LIMIT_REACHED", "#", why)]


class Comparison:
    """One run. ``failed``: pairs of schemas, by identity, that were found incompatible; ``steps``: those of earlier runs."""

    def __init__(self, failed: set[Pair], lenient: bool, steps: int = 0) -> None:
        self.failed = set(failed)
        self._lenient = lenient
        self._before = failed
        self._done: dict[Pair, list[Difference]] = {}
        self._kept: list[Any] = []
        """Schemas that were put together here: identities of live objects differ."""
        self.steps = steps

    @property
    def lenient(self) -> bool:
        """Whether the policy LENIENT holds."""
        return self._lenient

    def spend(self, steps: int) -> None:
        """Count steps; TooManySteps beyond MAX_STEPS."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooManySteps

    def refused(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        """What the reader refuses of what the writer accepts."""
        self.spend(1)
        path = path[:MAX_PATH]
        found_reader, found_writer = self._resolved(reader), self._resolved(writer)
        if found_reader is None or found_writer is None:
            # A meta-schema of JSON Schema, which only equals itself.
            return [] if reader.schema == writer.schema else [Difference("TYPE_CHANGED", path, "a $ref leads to another schema")]
        reader, writer = found_reader, found_writer
        if writer.schema is False or reader.schema in (True, {}):
            return []
        if reader.schema is False:
            return [Difference("TYPE_NARROWED", path, "nothing is accepted, and something can be written")]
        if writer.schema is True:
            writer = self._made(writer, {})
        pair = (id(reader.schema), id(writer.schema))
        if pair in self._done:
            known = self._done[pair]
            return known or ([Difference("TYPE_CHANGED", path, "as said above")] if pair in self._before else [])
        self._done[pair] = []
        self._kept += [reader.schema, writer.schema]
        found = self._conjunction(reader, writer, path)
        self._done[pair] = found
        if found:
            self.failed.add(pair)
        return found

    def accepts(self, reader: Node, writer: Node) -> bool:
        """Whether the reader accepts all that the writer does."""
        return not self.refused(reader, writer, "#")

    def _made(self, like: Node, schema: Any) -> Node:
        self._kept.append(schema)
        return like.at(schema)

    def _resolved(self, node: Node) -> Node | None:
        """The schema behind ``$ref``; None behind one that leads nowhere. Since 2019-09 what stands beside it counts too."""
        for _ in range(MAX_HOPS):
            if not isinstance(node.schema, dict) or not isinstance(node.schema.get("$ref"), str):
                return node
            target = node.pool.target(node, node.schema["$ref"])
            if target is None:
                return None
            beside = {key: each for key, each in node.schema.items() if key in _MEANING}
            if beside and node.pool.modern:
                if target.base != node.base:
                    target = self._made(node, {"$ref": node.schema["$ref"]})
                others = list(beside.pop("allOf", []))
                return self._made(node, beside | {"allOf": [target.schema, *others]})
            node = target
        return None

    # -- one schema against another ------------------------------------------------------------------------------------------

    def _conjunction(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        parts = list(self._parts(writer))
        found: list[Difference] = []
        combined = Combined(self, reader, writer, parts)
        for keys, rule in _GROUPS:
            if keys & reader.schema.keys():
                self.spend(sum(values.size(each.schema) for each in (reader, *parts)))
                own = {key: each for key, each in reader.schema.items() if key in keys}
                found += self._first(parts, writer, path, partial(_simple, rule, own, path))
        if objects.KEYS & reader.schema.keys():
            found += self._first(parts, writer, path, lambda part: objects.refused(self, reader, part, path))
        if arrays.KEYS & reader.schema.keys():
            found += self._first(parts, writer, path, lambda part: arrays.refused(self, reader, part, path))
        found += combined.refused(path)
        for keyword in _OPAQUE:
            mine = reader.schema.get(keyword, True)
            if mine not in (True, {}) and not any(values.same(mine, part.schema.get(keyword)) for part in parts):
                found.append(Difference("TYPE_CHANGED", path, f"{keyword} is compared by equality, and differs"))
        if "if" in reader.schema and {"then", "else"} & reader.schema.keys():
            condition = {key: reader.schema[key] for key in _CONDITION & reader.schema.keys()}
            if not any(condition == {key: part.schema[key] for key in _CONDITION & part.schema.keys()} for part in parts):
                found.append(Difference("TYPE_CHANGED", path, "if, then and else are compared by equality, and differ"))
        return found

    def _parts(self, writer: Node, hops: int = 0) -> Iterator[Node]:
        """The writer's own keywords, and those of its ``allOf``, which all hold."""
        self.spend(1)
        yield writer
        if hops < MAX_HOPS and isinstance(writer.schema.get("allOf"), list):
            for each in writer.schema["allOf"]:
                inner = self._resolved(writer.at(each))
                if inner is not None and isinstance(inner.schema, dict):
                    yield from self._parts(inner, hops + 1)

    def _first(self, parts: list[Node], writer: Node, path: str, attempt: Callable[[Node], list[Difference]]) -> list[Difference]:
        """Nothing if the keywords follow from one part of the writer's; else what the writer's own keywords lack."""
        found = attempt(parts[0])
        if not found or any(not attempt(part) for part in parts[1:]):
            return []
        for key in ("anyOf", "oneOf"):
            branches = writer.schema.get(key)
            if isinstance(branches, list) and branches and self._each(branches, writer, attempt):
                return []
        return found

    def _each(self, branches: list[Any], writer: Node, attempt: Callable[[Node], list[Difference]]) -> bool:
        """Whether the keywords follow from each branch of the writer's."""
        for branch in branches:
            inner = self._resolved(writer.at(branch))
            if inner is None or inner.schema is True:
                return False
            if inner.schema is not False and all(attempt(part) for part in self._parts(inner)):
                return False
        return True


_MEANING = (
    values.VALUE_KEYS
    | values.NUMBER_KEYS
    | values.STRING_KEYS
    | objects.KEYS
    | arrays.KEYS
    | COMBINED_KEYS
    | _CONDITION
    | {*_OPAQUE}
)
"""Keywords that refuse something; all others are annotations."""


def _simple(rule: Rule, own: values.Schema, path: str, part: Node) -> list[Difference]:
    return [Difference(word, f"{path}/{keyword}", why) for word, keyword, why in rule(own, part.schema)]
