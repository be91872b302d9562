"""Compatibility levels, modes and normalization: of a subject, of its context, or of all."""

from __future__ import annotations

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.compatibility import LEVELS

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
DEFAULT_LEVEL = "BACKWARD"
DEFAULT_MODE = "READWRITE"
DEFAULT_CONTEXT = "."
GLOBAL = ""
"""Stands for a subject: the settings of subjects and contexts without their own."""
_READ_ONLY = frozenset({"READONLY", "READONLY_OVERRIDE", "FORWARD"})


def context_of(subject: str) -> str:
    """``:.context:name`` is in ``.context``, everything else in the default one."""
    if subject.startswith(":."):
        return subject[1:].partition(":")[0]
    return DEFAULT_CONTEXT


class Settings:
    """What was set, by subject; ``:.context:`` stands for a context. Methods raise RegistryError."""

    def __init__(self) -> None:
        self.levels: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        self.normalizing: dict[str, bool] = {}

    def level(self, subject: str) -> str:
        """The subject's level, its context's, or the global one."""
        return self._setting(self.levels, subject) or DEFAULT_LEVEL

    def mode(self, subject: str) -> str:
        """The subject's mode, its context's, or the global one."""
        return self._setting(self.modes, subject) or DEFAULT_MODE

    @staticmethod
    def _setting(table: dict[str, str], subject: str) -> str | None:
        return table.get(subject) or table.get(f":{context_of(subject)}:") or table.get(GLOBAL)

    def normalizes(self, subject: str) -> bool:
        """Whether schemas of the subject are normalized without a request for it."""
        return self.normalizing.get(subject, self.normalizing.get(GLOBAL, False))

    def set_level(self, subject: str, level: object) -> None:
        """42203 for an unknown level."""
        if not isinstance(level, str) or level.upper() not in LEVELS:
            raise errors.invalid_compatibility(level, LEVELS)
        self.levels[subject] = level.upper()

    def set_mode(self, subject: str, mode: object, *, may_import: bool) -> None:
        """42204 for an unknown mode, 42205 for IMPORT without ``may_import``."""
        if not isinstance(mode, str) or mode.upper() not in MODES:
            raise errors.invalid_mode(mode, MODES)
        if mode.upper() == "IMPORT" and not may_import:
            raise errors.not_permitted("Mode IMPORT needs a registry or subject without schemas, or force=true.")
        self.modes[subject] = mode.upper()

    def check_writable(self, subject: str) -> None:
        """42205 in a mode that is read-only."""
        if self.mode(subject) in _READ_ONLY:
            raise errors.not_permitted(f"Subject '{subject}' is in mode {self.mode(subject)}.")

    def forget(self, subject: str) -> None:
        """Drop the level and the mode of a deleted subject."""
        self.levels.pop(subject, None)
        self.modes.pop(subject, None)
