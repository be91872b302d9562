"""Items of JSON Schema's arrays: all alike, or by position (``prefixItems``; before 2020-12 a list in ``items``) with a rest."""

from __future__ import annotations

from typing import Any

from tidelog.registry.formats import Difference
from tidelog.registry.formats.json_schema import values
from tidelog.registry.formats.json_schema.documents import Node
from tidelog.registry.formats.json_schema.rules import Rules

KEYS = frozenset({"items", "prefixItems", "additionalItems", "uniqueItems", "minItems", "maxItems", "contains"})
_CONTAINS = ("minContains", "maxContains")


def refused(rules: Rules, reader: Node, writer: Node, path: str) -> list[Difference]:
    """What the reader refuses of the writer's arrays."""
    if "array" not in values.types_of(writer.schema):
        return []
    found: list[Difference] = []
    (mine, rest), (theirs, their_rest) = _model(reader.schema), _model(writer.schema)
    for index in range(max(len(mine), len(theirs))):
        own = mine[index] if index < len(mine) else rest
        written = theirs[index] if index < len(theirs) else their_rest
        faults = rules.refused(reader.at(own), writer.at(written), f"{path}/items/{index}")
        if faults and index >= len(theirs) and written in (True, {}):
            word = "ITEM_ADDED_TO_OPEN_CONTENT_MODEL"
            found.append(Difference(word, f"{path}/items/{index}", f"item {index} may be any value", str(index)))
        elif faults and index >= len(mine) and own is False:
            word = "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"
            found.append(Difference(word, f"{path}/items/{index}", f"item {index} may be there", str(index)))
        else:
            found += faults
    faults = rules.refused(reader.at(rest), writer.at(their_rest), f"{path}/items")
    if faults and (mine or theirs):
        word = "ADDITIONAL_ITEMS_REMOVED" if rest is False else "ADDITIONAL_ITEMS_NARROWED"
        found.append(Difference(word, f"{path}/additionalItems", "further items may be values that are refused"))
    else:
        found += faults
    for word, keyword, why in values.counts(reader.schema, writer.schema, "minItems", "maxItems"):
        found.append(Difference(word, f"{path}/{keyword}", why))
    if reader.schema.get("uniqueItems") is True and writer.schema.get("uniqueItems") is not True:
        found.append(Difference("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "items may repeat"))
    return found + _contains(rules, reader, writer, path)


def _model(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The items by position, and all others."""
    if isinstance(schema.get("prefixItems"), list):
        return schema["prefixItems"], schema.get("items", True)
    items = schema.get("items", True)
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return [], items


def _contains(rules: Rules, reader: Node, writer: Node, path: str) -> list[Difference]:
    if "contains" not in reader.schema:
        return []
    mine, theirs = reader.schema, writer.schema
    if "contains" in theirs and all(mine.get(key) == theirs.get(key) for key in _CONTAINS):
        if "maxContains" in mine and not values.same(mine["contains"], theirs["contains"]):
            return [Difference("TYPE_NARROWED", f"{path}/contains", "with maxContains it is compared by equality, and differs")]
        return rules.refused(reader.at(mine["contains"]), writer.at(theirs["contains"]), f"{path}/contains")
    if mine.get("minContains") == 0 and "maxContains" not in mine:
        return []
    return [Difference("TYPE_NARROWED", f"{path}/contains", "arrays without such an item can be written")]
