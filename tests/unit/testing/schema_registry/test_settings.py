"""Levels, modes and normalization of subjects, contexts and all."""

from __future__ import annotations

import pytest

from tidelog.testing.schema_registry.errors import RegistryError
from tidelog.testing.schema_registry.settings import GLOBAL, Settings, context_of


def refused(code: int) -> pytest.RaisesExc[RegistryError]:
    return pytest.RaisesExc(RegistryError, check=lambda error: error.code == code)


def test_a_subject_names_its_context() -> None:
    assert [context_of(each) for each in ("s", ":.c:s", ":.c:")] == [".", ".c", ".c"]


def test_a_subject_has_its_own_setting_or_that_of_its_context_or_the_global_one() -> None:
    settings = Settings()
    assert (settings.level("s"), settings.mode("s"), settings.normalizes("s")) == ("BACKWARD", "READWRITE", False)
    settings.set_level(GLOBAL, "FULL")
    settings.set_level(":.c:", "none")
    settings.set_level("s", "FORWARD")
    assert [settings.level(each) for each in ("s", "t", ":.c:s")] == ["FORWARD", "FULL", "NONE"]
    settings.set_mode(":.c:", "readonly", may_import=False)
    assert [settings.mode(each) for each in ("s", ":.c:s")] == ["READWRITE", "READONLY"]
    settings.normalizing |= {GLOBAL: True, "s": False}
    assert [settings.normalizes(each) for each in ("s", "t")] == [False, True]


def test_unknown_levels_and_modes_are_refused() -> None:
    settings = Settings()
    for level in ("SOMEWHAT", None, 1):
        with refused(42203):
            settings.set_level("s", level)
    for mode in ("SOMETIMES", None, 1):
        with refused(42204):
            settings.set_mode("s", mode, may_import=True)
    assert (settings.levels, settings.modes) == ({}, {})


def test_mode_import_needs_leave() -> None:
    settings = Settings()
    with refused(42205):
        settings.set_mode("s", "IMPORT", may_import=False)
    settings.set_mode("s", "IMPORT", may_import=True)
    assert settings.mode("s") == "IMPORT"


def test_read_only_modes_refuse_writes_and_a_deleted_subject_loses_its_mode() -> None:
    settings = Settings()
    for mode in ("READONLY", "READONLY_OVERRIDE", "FORWARD"):
        settings.set_mode("s", mode, may_import=False)
        with refused(42205):
            settings.check_writable("s")
    settings.set_level("s", "NONE")
    settings.forget("s")
    settings.check_writable("s")
    assert settings.level("s") == "BACKWARD"
