"""A dry run of the authorizer: decisions are made, logged and counted, and every request goes through."""

from __future__ import annotations

from typing import Final

SETTING: Final = "tidelog.authorizer.dry.run"


class DryRun:
    """What one node would have denied."""

    __slots__ = ("_told", "denials")

    def __init__(self) -> None:
        self.denials = 0
        """Operations that went through and would have been denied, since the start."""
        self._told = 0

    def warning(self) -> str:
        """What the log says once a minute, for as long as the dry run lasts."""
        new, self._told = self.denials - self._told, self.denials
        return (
            f"the authorizer is in a dry run ({SETTING}=true): every client may do everything. {new} operations would have been "
            f"denied since the last of these lines, {self.denials} since the start"
        )
