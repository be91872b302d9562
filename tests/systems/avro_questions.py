"""Pairs of Avro schemas: one made at random, and one made of it by changes as people make them, or by others."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS = {"null": None, "boolean": True, "int": 1, "long": 2, "float": 1.5, "double": 2.5, "bytes": "x", "string": "y"}
SPACES = (None, "a", "a.b")


class Maker:
    """Schemas from one source of randomness. Names of types are new ones, or refer to an earlier one."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names: list[str] = []

    def schema(self, depth: int) -> Any:
        """A schema of at most this depth."""
        rng = self._rng
        kind = rng.choice(
            ("primitive", "primitive", "logical", "record", "record", "enum", "fixed", "array", "map", "union", "again")
        )
        if depth <= 0 or kind == "primitive":
            return rng.choice(PRIMITIVES)
        if kind == "again" and self._names:
            return rng.choice(self._names)
        if kind == "logical":
            return (
                {"type": "int", "logicalType": "date"} if rng.random() < 0.5 else {"type": "string", "x-note": {"b": 1, "a": [2]}}
            )
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "union":
            return [self.schema(depth - 1) for _ in range(rng.randint(1, 3))]
        return self._named(kind if kind in ("record", "enum", "fixed") else "record", depth)

    def _named(self, kind: str, depth: int) -> dict[str, Any]:
        rng = self._rng
        name, space = f"{kind[0].upper()}{len(self._names)}", rng.choice(SPACES)
        made: dict[str, Any] = {"type": kind, "name": name}
        if space is not None:
            made["namespace"] = space
        self._names.append(f"{space}.{name}" if space else name)
        if rng.random() < 0.2:
            made |= {"doc": "d", "owner": "o"}
        if rng.random() < 0.2:
            made["aliases"] = rng.sample(["Old", "a.Older", "R0"], 2)
        if kind == "enum":
            made["symbols"] = rng.sample("XYZ", rng.randint(1, 3))
            if rng.random() < 0.3:
                made["default"] = made["symbols"][0]
        elif kind == "fixed":
            made["size"] = rng.randint(1, 3)
        else:
            made["fields"] = [self.field(name, depth) for name in rng.sample("fgh", rng.randint(0, 3))]
        return made

    def field(self, name: str, depth: int) -> dict[str, Any]:
        """A field of a record, perhaps with a default."""
        rng = self._rng
        made: dict[str, Any] = {"name": name, "type": self.schema(depth - 1)}
        if isinstance(made["type"], str) and made["type"] in DEFAULTS and rng.random() < 0.5:
            made["default"] = DEFAULTS[made["type"]]
        if rng.random() < 0.1:
            made |= {"order": rng.choice(["ascending", "descending", "ignore"]), "note": 1}
        if rng.random() < 0.2:
            made["aliases"] = [rng.choice("fgh") + "2"]
        return made


def changed(schema: Any, rng: random.Random) -> Any:
    """A copy with one place changed."""
    made = copy.deepcopy(schema)
    places = list(_places(made))
    if not places:
        return rng.choice(PRIMITIVES)
    holder, key = rng.choice(places)
    node = holder[key]
    if isinstance(node, dict) and "fields" in node and rng.random() < 0.7:
        fields = node["fields"]
        free = [name for name in "fghi" if name not in [each["name"] for each in fields]]
        if fields and rng.random() < 0.5:
            fields.pop(rng.randrange(len(fields)))
        elif free:
            fields.append(Maker(rng).field(free[0], 1))
    elif isinstance(node, dict) and "symbols" in node:
        node["symbols"] = rng.sample("WXYZ", rng.randint(1, 4))
        node.pop("default", None)
    elif isinstance(node, dict) and "size" in node:
        node["size"] += 1
    elif isinstance(node, dict) and "name" in node:
        node["name"] += "x"
    elif isinstance(node, list) and rng.random() < 0.5:
        node.append(rng.choice(PRIMITIVES))
    else:
        holder[key] = rng.choice([rng.choice(PRIMITIVES), [node, "null"], ["null", "string"]])
    return made


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, list):
        for index, each in enumerate(node):
            yield node, index
            yield from _places(each)
    elif isinstance(node, dict):
        for key in ("items", "values", "type"):
            if key in node and (
                key != "type" or ("name" in node and "fields" not in node and "symbols" not in node and "size" not in node)
            ):
                yield node, key
                yield from _places(node[key])
        for each in node.get("fields", ()):
            yield each, "type"
            yield from _places(each["type"])


def questions(seed: int, count: int) -> Iterator[tuple[Any, Any]]:
    """(reader, writer) pairs."""
    rng = random.Random(seed)
    for _ in range(count):
        writer = Maker(rng).schema(3)
        yield (Maker(rng).schema(3) if rng.random() < 0.1 else _top(writer, rng)), writer


def _top(writer: Any, rng: random.Random) -> Any:
    holder = {"type": "array", "items": copy.deepcopy(writer)}
    for _ in range(rng.randint(0, 3)):
        holder = changed(holder, rng)
    return holder["items"]
