"""What a change will do, or did: the one shape of all previews and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One thing that changes."""

    what: str
    before: str | None
    after: str | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A change. ``lost``: what nothing brings back. ``confirm``: a text that the user types before it runs."""

    title: str
    rows: tuple[PlanRow, ...] = ()
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    command: str | None = None
    confirm: str | None = None
    failed: tuple[tuple[str, str], ...] = ()
    done: bool = False

    def carried_out(self, failed: tuple[tuple[str, str], ...] = ()) -> Plan:
        """As done; ``failed``: (what, error) of the parts that were refused."""
        return replace(self, done=True, failed=failed)

    def as_json(self) -> dict[str, Any]:
        rows: list[Mapping[str, Any]] = [
            {"what": row.what, "before": row.before, "after": row.after, "note": row.note} for row in self.rows
        ]
        return {
            "done": self.done,
            "dry_run": not self.done,
            "title": self.title,
            "rows": rows,
            "lost": list(self.lost),
            "warnings": list(self.warnings),
            "command": self.command,
            "confirm": self.confirm,
            "failed": [{"what": what, "error": error} for what, error in self.failed],
        }
