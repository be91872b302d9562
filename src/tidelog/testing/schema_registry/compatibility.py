"""Compatibility levels: which earlier versions count, and which side reads the other's data."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.testing.schema_registry.formats import Document, format_of

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")

Earlier = tuple[int, str, Document]
"""Version, format and text."""


@dataclass(slots=True)
class Checked:
    """``reasons`` is empty when the level allows the schema; ``unchecked`` says what was not compared."""

    reasons: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def check(new: tuple[str, Document], earlier: list[Earlier], level: str) -> Checked:
    """Compare a schema with the latest of the earlier ones, or with all of them if the level is transitive."""
    result = Checked()
    if level == "NONE":
        return result
    kind, document = new
    for number, other_kind, other in earlier if level.endswith("_TRANSITIVE") else earlier[-1:]:
        if other_kind != kind:
            result.reasons.append(f"version {number} is {other_kind}, this is {kind}")
            continue
        directions = []
        if level.startswith(("BACKWARD", "FULL")):
            directions.append(("it cannot read data of version", document, other))
        if level.startswith(("FORWARD", "FULL")):
            directions.append(("its data cannot be read with version", other, document))
        for words, reader, writer in directions:
            found = format_of(kind).compare(reader, writer)
            result.reasons += [f"{reason} ({words} {number})" for reason in found.reasons]
            result.unchecked += [f"not checked: {what} (version {number})" for what in found.unchecked]
    return result
