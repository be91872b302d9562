"""Why a group is stuck: one primary cause with its proof, at most two more, what is fine, what is not visible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause. ``cause`` is its id in docs/internals/diagnosis.md."""

    cause: str
    title: str
    evidence: tuple[str, ...]
    advice: str
    command: str = ""
    """A command that helps, or shows more; empty where there is none."""
    alarm: bool = True
    """False for what looks odd and is normal, and for what is not certain."""
    certain: bool = True
    """False where it may be a fault or not: nothing here decides it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about a group."""

    group_id: str
    state: str
    lag: int
    seconds: float
    """The time that was watched."""
    primary: Finding | None
    contributing: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    """What is no alarm."""
    fine: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    def as_json(self) -> Mapping[str, Any]:
        """For programs; the keys stay."""

        def of(finding: Finding) -> dict[str, Any]:
            return {
                "cause": finding.cause,
                "title": finding.title,
                "evidence": list(finding.evidence),
                "advice": finding.advice,
                "command": finding.command or None,
                "certain": finding.certain,
            }

        return {
            "group": self.group_id,
            "state": self.state,
            "lag": self.lag,
            "watched_seconds": round(self.seconds, 3),
            "primary": None if self.primary is None else of(self.primary),
            "contributing": [of(each) for each in self.contributing],
            "notes": [of(each) for each in self.notes],
            "fine": list(self.fine),
            "not_visible": list(self.unseen),
        }
