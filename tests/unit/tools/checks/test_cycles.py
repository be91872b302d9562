"""Import cycles are found whatever form the imports have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.checks import cycles
from tools.checks.cycles import compare, graph_of

PLANTED = {
    "pack/__init__.py": "",
    "pack/first.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.second import Thing\n",
    "pack/second.py": "def late() -> None:\n    from . import third\n",
    "pack/third.py": "import pack.first\n",
    "pack/alone.py": "from pack import first\n",
}


def planted(folder: Path) -> list[tuple[str, ...]]:
    for name, text in PLANTED.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return cycles.cycles(graph_of(folder, sorted(folder.rglob("*.py"))))


def test_a_cycle_through_type_checking_functions_and_relative_imports_is_found(tmp_path: Path) -> None:
    assert planted(tmp_path) == [("pack.first", "pack.second", "pack.third")]


def test_two_cycles_that_share_no_module_are_two() -> None:
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}, "e": {"a"}}
    assert cycles.cycles(graph) == [("a", "b"), ("c", "d")]


def test_a_cycle_that_is_not_listed_fails(tmp_path: Path) -> None:
    (finding,) = compare(planted(tmp_path), [])
    assert finding.startswith("import cycle: pack.first, pack.second, pack.third")


def test_a_listed_cycle_passes_and_a_larger_one_does_not() -> None:
    assert compare([("a", "b")], [("a", "b")]) == []
    assert len(compare([("a", "b", "c")], [("a", "b")])) == 2


def test_a_listed_cycle_that_is_gone_or_smaller_fails() -> None:
    (gone,) = compare([], [("a", "b")])
    assert "smaller or gone (a, b)" in gone
    (smaller,) = compare([("a", "b")], [("a", "b", "c")])
    assert "smaller or gone" in smaller


def test_the_list_is_not_rewritten_with_more_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "LIST", tmp_path / "cycles.txt")
    monkeypatch.setattr(cycles, "current", lambda: [("a", "b", "c")])
    cycles.LIST.write_text("a b\n")
    assert cycles.write().startswith("refused")
    monkeypatch.setattr(cycles, "current", list)
    cycles.write()
    assert cycles.known() == []
