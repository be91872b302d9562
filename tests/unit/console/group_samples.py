"""A healthy group of one member and one partition, and what may be changed of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidelog.console.group_facts import GroupFacts, MemberFacts, PartitionFacts, Sample
from tidelog.console.verdict import Verdict

AT = ("orders", 0)
HEALTHY = PartitionFacts(1, (1, 2), (1, 2), 1, start=0, stable=100, end=100, committed=100)
READER = MemberFacts("m1", "app", "/10.0.0.1", None, frozenset({AT}), None, frozenset({"orders"}))
SAMPLE = Sample(0, "Stable", members=(READER,), partitions={AT: HEALTHY})
EMPTY = Sample(0, "Empty", partitions={AT: replace(HEALTHY, committed=40)})


def facts(first: Sample, last: Sample | None = None, seconds: int = 5) -> GroupFacts:
    return GroupFacts("g", first, replace(last or first, at_ms=first.at_ms + 1000 * seconds))


def with_partition(sample: Sample = SAMPLE, **changes: Any) -> Sample:
    return replace(sample, partitions={AT: replace(HEALTHY, **changes)})


def cause(verdict: Verdict) -> str | None:
    return None if verdict.primary is None else verdict.primary.cause


def notes(verdict: Verdict) -> list[str]:
    return [each.cause for each in verdict.notes]
