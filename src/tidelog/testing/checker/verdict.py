"""The result of a check: which promises were broken, how often, and examples of each.

The classes of anomalies are those of Jepsen's Kafka queue workload and of Adya's isolation phenomena, as far as a log has them,
and those that only consume-transform-produce has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

EXAMPLES = 10
"""The number of examples kept per anomaly; all are counted."""


class Anomaly(Enum):
    """A broken promise. The value is its name in reports."""

    ABORTED_READ = "aborted read (G1a)"
    """A read_committed reader got a record of an aborted transaction, or of a send that was refused."""
    INTERMEDIATE_READ = "intermediate read (G1b)"
    """A read_committed reader got a record before the commit of its transaction was requested."""
    PHANTOM_READ = "phantom read"
    """A record that was never sent."""
    LOST_WRITE = "lost write"
    """Acknowledged (and committed); readers have passed its offset, and none has seen it."""
    UNSEEN_WRITE = "unseen write"
    """Acknowledged (and committed), but missing when the log was read to its end after all writers had stopped."""
    DUPLICATE_WRITE = "duplicate write"
    """One send, read at two offsets."""
    TORN_TRANSACTION = "torn transaction"
    """A part of a committed transaction is there, another part is not."""
    INCONSISTENT_OFFSET = "inconsistent offset"
    """One offset with two values, or a value at another offset than was acknowledged."""
    POLL_BACK_WITHIN = "non-monotonic poll (internal)"
    """Offsets of a partition go back within one poll."""
    POLL_BACK = "non-monotonic poll (external)"
    """A poll begins before the end of the previous one, without a seek or rebalance in between."""
    SEND_BACK_WITHIN = "non-monotonic send (internal)"
    """Two records that one transaction sent in order are in the opposite order."""
    SEND_BACK = "non-monotonic send (external)"
    """Two records of one producer, outside transactions or in two of them, are in the opposite order."""
    SKIPPED_WITHIN = "skipped read (internal)"
    """A poll leaves out a record that others saw, between two that it has."""
    SKIPPED = "skipped read (external)"
    """Two polls in a row leave out a record that others saw."""
    G0 = "write cycle (G0)"
    G1C = "cycle of what was written and read (G1c)"
    G_SINGLE = "cycle with one anti-dependency (G-single)"
    G2 = "cycle with several anti-dependencies (G2)"
    ABORTED_OFFSETS = "aborted offsets"
    """A group's committed offset that only aborted transactions have sent, or no client."""
    LOST_OFFSETS = "lost offsets"
    """A group's committed offset lies before one that had been acknowledged."""
    DUPLICATE_OUTPUT = "duplicate output"
    """A consumed record that was transformed landed twice in the output."""
    MISSING_OUTPUT = "missing output"
    """The group's committed offset has passed a record that never landed in the output."""
    UNCOUNTED_OUTPUT = "output without its offset"
    """A record landed in the output though the group's committed offset has not passed it."""


@dataclass(slots=True)
class Found:
    """How often, and the first examples, each a sentence."""

    count: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of the history. ``unknown``: transactions whose commit was requested and never answered clearly."""

    events: int
    processes: int
    sends: int
    polls: int
    records_read: int
    commits: int
    aborts: int
    unknown: int


@dataclass(slots=True)
class Verdict:
    """The outcome of a check; valid without ``anomalies``."""

    anomalies: dict[Anomaly, Found] = field(default_factory=dict)
    counts: Counts | None = None

    @property
    def valid(self) -> bool:
        """Whether there are no findings."""
        return not self.anomalies

    def add(self, anomaly: Anomaly, sentence: str) -> None:
        """Adds a finding. The sentence says where, in terms of the history."""
        found = self.anomalies.setdefault(anomaly, Found())
        found.count += 1
        if len(found.examples) < EXAMPLES:
            found.examples.append(sentence)

    def text(self) -> str:
        """For people."""
        lines = []
        if self.counts is not None:
            told = self.counts
            lines.append(
                f"{told.events} events of {told.processes} processes: {told.sends} sends, {told.polls} polls with "
                f"{told.records_read} records; {told.commits} transactions committed, "
                f"{told.aborts} aborted, {told.unknown} unknown."
            )
        for anomaly, found in self.anomalies.items():
            lines.append(f"{anomaly.value}: {found.count}")
            lines += [f"    {example}" for example in found.examples]
        lines.append("Nothing wrong was found." if self.valid else f"{len(self.anomalies)} kinds of anomalies.")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        told = self.counts
        return {
            "valid": self.valid,
            "counts": None if told is None else {name: getattr(told, name) for name in Counts.__slots__},
            "anomalies": {
                anomaly.name: {"count": found.count, "examples": found.examples} for anomaly, found in self.anomalies.items()
            },
        }
