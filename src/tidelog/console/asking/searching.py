"""Names that match what was typed, best first: the whole name, its beginning, the beginning of a word in it, any part."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORDS = re.compile(r"[^0-9a-z]+")


@dataclass(frozen=True, slots=True)
class Named:
    """Something that can be found. ``text``: what is shown beside the name."""

    kind: str
    name: str
    text: str


def found(query: str, names: Iterable[Named], limit: int) -> list[Named]:
    """At most ``limit`` of them, best first; all letters count alike."""
    wanted = query.casefold()
    ranked = [
        (rank, len(each.name), each.name, each.kind, each) for each in names if (rank := _rank(wanted, each.name)) is not None
    ]
    return [each for *_, each in heapq.nsmallest(limit, ranked, key=lambda row: row[:4])]


def matches(query: str, name: str) -> bool:
    """Whether ``found`` would find this name: cheaper than to say more of each."""
    return query in name.casefold()


def _rank(wanted: str, name: str) -> int | None:
    text = name.casefold()
    if wanted not in text:
        return None
    if text == wanted:
        return 0
    if text.startswith(wanted):
        return 1
    return 2 if any(word.startswith(wanted) for word in _WORDS.split(text)) else 3
