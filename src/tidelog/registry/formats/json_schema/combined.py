"""``allOf``, ``anyOf``, ``oneOf`` and ``not`` of a reader's JSON schema, and whether they follow from the writer's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.registry.formats import Difference
from tidelog.registry.formats.json_schema.documents import Node
from tidelog.registry.formats.json_schema.rules import Rules

COMBINED_KEYS = frozenset({"allOf", "anyOf", "oneOf", "not"})


class Combined:
    """``parts``: the writer's own keywords and those of its ``allOf``."""

    def __init__(self, rules: Rules, reader: Node, writer: Node, parts: Sequence[Node]) -> None:
        self._rules, self._reader, self._writer, self._parts = rules, reader, writer, parts

    def refused(self, path: str) -> list[Difference]:
        """What the combined keywords refuse."""
        schema = self._reader.schema
        found: list[Difference] = []
        for index, each in enumerate(_branches(schema, "allOf")):
            mine = self._reader.at(each)
            faults = self._rules.refused(mine, self._writer, f"{path}/allOf/{index}")
            theirs = (part.at(branch) for part in self._parts for branch in _branches(part.schema, "allOf"))
            if faults and not any(self._rules.accepts(mine, branch) for branch in theirs):
                found += faults
        for key in ("anyOf", "oneOf"):
            branches = _branches(schema, key)
            if branches:
                found += self._sum(key, [self._reader.at(each) for each in branches], path)
        if "not" in schema:
            found += self._negated(path)
        return found

    def _sum(self, key: str, mine: list[Node], path: str) -> list[Difference]:
        if any(self._rules.accepts(branch, part) for branch in mine for part in self._parts):
            return []
        sums = [
            [part.at(each) for each in _branches(part.schema, kind)]
            for part in self._parts
            for kind in ("anyOf", "oneOf")
            if kind in part.schema
        ]
        for theirs in sums:
            if _matched(self._rules, mine, theirs, exclusive=key == "oneOf"):
                return []
        if sums:
            why = f"a branch of the writer's {len(sums[0])} has no counterpart among {len(mine)}"
            word = "SUM_TYPE_NARROWED" if len(mine) < len(sums[0]) else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
            return [Difference(word, f"{path}/{key}", why)]
        return [Difference("COMBINED_TYPE_CHANGED", f"{path}/{key}", "no branch accepts all that can be written")]

    def _negated(self, path: str) -> list[Difference]:
        refused = self._reader.at(self._reader.schema["not"])
        for part in self._parts:
            if "not" in part.schema and self._rules.accepts(part.at(part.schema["not"]), refused):
                return []
        word = "NOT_TYPE_EXTENDED" if any("not" in part.schema for part in self._parts) else "TYPE_NARROWED"
        return [Difference(word, f"{path}/not", "it refuses what can be written")]


def _branches(schema: dict[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _matched(rules: Rules, mine: list[Node], theirs: list[Node], *, exclusive: bool) -> bool:
    """Whether one of mine accepts each of the writer's; ``exclusive``: each another one (a bipartite matching)."""
    options = [[index for index, each in enumerate(mine) if rules.accepts(each, branch)] for branch in theirs]
    if not exclusive:
        return all(options)
    taken: dict[int, int] = {}

    def place(branch: int, seen: set[int]) -> bool:
        for option in options[branch]:
            if option not in seen:
                seen.add(option)
                if option not in taken or place(taken[option], seen):
                    taken[option] = branch
                    return True
        return False

    return all(place(branch, set()) for branch in range(len(theirs)))
