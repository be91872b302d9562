"""How causes name partitions, members and times: the first few, and how many more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tidelog.client.calls import Partition
from tidelog.console.group_facts import MemberFacts, PartitionFacts

SHOWN: Final = 5
"""Partitions or members of one finding that are named."""


def each_line(found: Mapping[Partition, PartitionFacts], text: Callable[[PartitionFacts], str]) -> tuple[str, ...]:
    """A line for each of the first partitions, and one for the rest."""
    lines = [f"{topic}-{index}: {text(part)}" for (topic, index), part in sorted(found.items())[:SHOWN]]
    return (*lines, f"and {len(found) - SHOWN} more") if len(found) > SHOWN else tuple(lines)


def named(members: Iterable[MemberFacts]) -> tuple[str, ...]:
    """The first members by name, and how many more."""
    names = sorted(member.name for member in members)
    return (*names[:SHOWN], f"and {len(names) - SHOWN} more") if len(names) > SHOWN else tuple(names)


def partitions_text(found: Iterable[Partition]) -> str:
    """The first partitions by name, and how many more."""
    names = [f"{topic}-{index}" for topic, index in sorted(found)]
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def numbers(brokers: Iterable[int]) -> str:
    """Ids of brokers."""
    return ", ".join(map(str, brokers)) or "none"


def count(found: Iterable[object], what: str) -> str:
    """``1 partition``, ``2 partitions``."""
    number = len(list(found))
    return f"{number} {what}" + ("" if number == 1 else "s")


def span(seconds: float) -> str:
    """A time in the largest unit that reads well."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
