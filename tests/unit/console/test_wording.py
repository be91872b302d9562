"""How findings name what they are about."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.console.group_samples import HEALTHY, SAMPLE, facts
from tidelog.console.causes import diagnose
from tidelog.console.wording import count, numbers, span


def test_a_finding_names_five_partitions_and_counts_the_rest() -> None:
    parts = {("orders", index): replace(HEALTHY, leader=-1) for index in range(9)}
    verdict = diagnose(facts(replace(SAMPLE, partitions=parts)))
    assert verdict.primary is not None
    assert (len(verdict.primary.evidence), verdict.primary.evidence[-1]) == (6, "and 4 more")


def test_numbers_and_times_read_well() -> None:
    assert (count([1], "member"), count([], "member")) == ("1 member", "0 members")
    assert (numbers([]), numbers([1, 2])) == ("none", "1, 2")
    assert (span(119), span(120), span(7200)) == ("119 s", "2 min", "2.0 h")
