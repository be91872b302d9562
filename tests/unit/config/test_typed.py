"""The generated attributes are those of the tables."""

from __future__ import annotations

from pathlib import Path

from tidelog.config import typed
from tools.generate_reference import typed_config


def test_the_module_is_what_the_tables_give() -> None:
    assert Path(typed.__file__).read_text(encoding="utf-8") == typed_config()
