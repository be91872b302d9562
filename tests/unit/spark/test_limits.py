"""Limits under one name: Spark's own where it has them."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from tidelog.spark import limits


def test_without_sparks_own_there_are_others_of_the_same_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on PySpark 4.1."""
    load = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "pyspark.sql.streaming.datasource":
            raise ImportError(name)
        return load(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    spec = importlib.util.spec_from_file_location("limits_of_old", limits.__file__)
    assert spec is not None and spec.loader is not None
    old = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "limits_of_old", old)  # dataclasses look there
    spec.loader.exec_module(old)
    assert old.ReadMaxRows(5).max_rows == limits.ReadMaxRows(5).max_rows == 5
    assert isinstance(old.ReadMaxRows(5), old.ReadLimit) and isinstance(old.ReadAllAvailable(), old.ReadLimit)
    assert all(hasattr(old, name) for name in limits.__all__)
