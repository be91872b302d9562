"""What a scenario is: how a group is brought into its state, and what has to be named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.causes.scene import Scene
from tests.causes.stages import NODE

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``cause`` is what has to be named as primary, or None for no alarm. ``note`` is what has to be named as no fault."""

    name: str
    made: str
    make: Callable[[Scene], Answer]
    cause: str | None
    evidence: str = ""
    """A part of the evidence."""
    note: str | None = None
    fast: bool = False
    """Runs in the ordinary tests."""
    beside: str | None = None
    """What has to be named after the primary cause: a pair of causes made at once."""
    stage: str = NODE
    """Where it plays."""

    def judge(self, answer: Answer) -> str | None:
        """What is wrong with the answer, or None."""
        primary, notes = answer["primary"], {each["cause"]: each for each in answer["notes"]}
        named = None if primary is None else primary["cause"]
        if named != self.cause:
            return f"{named or 'no alarm'} was named, not {self.cause or 'no alarm'}"
        contributing = [each["cause"] for each in answer["contributing"]]
        if self.beside is not None and self.beside not in contributing:
            return f"{self.beside} is not among the contributing causes {contributing}"
        if self.note is not None and self.note not in notes:
            return f"{self.note} is not among the notes {sorted(notes)}"
        shown = primary if primary is not None else notes.get(self.note or "")
        if self.evidence and (shown is None or self.evidence not in "; ".join(shown["evidence"])):
            return f"the evidence lacks {self.evidence!r}"
        return None
