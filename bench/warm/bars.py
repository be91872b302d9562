"""What a row must show: a bar, and whether the rounds are above or below it for certain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bench.pair.statistics import Interval, Outcome
from bench.warm.page import shown


class Figure(Enum):
    """What a bar is on, as tables name it. Those over a side are medians of paired ratios; the others are tidelog's own."""

    CPU = "CPU / Kafka's"
    RATE = "rate / Kafka's"
    LIMIT = "CPU / the C limit's"
    RECORDS = "records/s"
    P50 = "p50, ms"
    P99 = "p99, ms"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class Bar:
    """At most ``bound``, or at least it. ``instead``: another bar that will do where this one is missed."""

    of: Figure
    bound: float
    least: bool = False
    instead: Bar | None = None

    def text(self) -> str:
        """As it stands in the table."""
        own = f"{self.of.value} {'≥' if self.least else '≤'} {shown(self.bound)}"
        return own if self.instead is None else f"{own}, or {self.instead.text()}"


def judge(bar: Bar, found: Interval) -> Outcome:
    """PASS: the whole interval is on the right side of the bound; FAIL: none of it is."""
    if bar.least:
        return Outcome.PASS if found.low >= bar.bound else Outcome.FAIL if found.high < bar.bound else Outcome.UNDECIDED
    return Outcome.PASS if found.high <= bar.bound else Outcome.FAIL if found.low > bar.bound else Outcome.UNDECIDED


def either(one: Outcome, other: Outcome) -> Outcome:
    """Of two bars of which one is enough."""
    return next((each for each in (Outcome.PASS, Outcome.UNDECIDED) if each in (one, other)), Outcome.FAIL)


WORDS = {Outcome.PASS: "met", Outcome.FAIL: "**not met**", Outcome.UNDECIDED: "open"}
"""``open``: the interval has the bar inside."""
