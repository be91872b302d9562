"""Large modules and classes are found, and the lists of them only shrink."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.checks import sizes
from tools.checks.sizes import compare, too_large


def test_a_long_module_a_long_class_and_many_methods_are_found(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * 451)
    (tmp_path / "edge.py").write_text("x = 1\n" * 450)
    (tmp_path / "tall.py").write_text("class Tall:\n" + "    x = 1\n" * 300)
    (tmp_path / "wide.py").write_text("class Wide:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(26)))
    files = sorted(tmp_path.glob("*.py"))
    assert too_large(files, tmp_path) == {"lines long.py": 451, "lines tall.py:Tall": 301, "methods wide.py:Wide": 26}
    assert too_large(files, tmp_path, ["wide.py:Wide", "tall.py:Tall"]) == {"lines long.py": 451}


def test_what_is_not_listed_or_has_grown_fails() -> None:
    assert compare({"lines a.py": 460}, {"lines a.py": 460}, {}) == []
    assert len(compare({"lines a.py": 461}, {"lines a.py": 460}, {})) == 1
    assert len(compare({"lines b.py": 451}, {}, {})) == 1


def test_a_stale_line_fails() -> None:
    (finding,) = compare({}, {"lines a.py": 460}, {})
    assert "is small now" in finding


def test_five_reasons_are_enough_and_each_is_a_sentence() -> None:
    reason = "a table of calls, one line each"
    assert compare({}, {}, {f"a.py:C{n}": reason for n in range(5)}) == []
    assert len(compare({}, {}, {f"a.py:C{n}": reason for n in range(6)})) == 1
    assert len(compare({}, {}, {"a.py:C": "it is large"})) == 1


def test_the_list_only_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "LIST", tmp_path / "sizes.txt")
    sizes.LIST.write_text("lines a.py 460\nlines b.py 470\n")
    monkeypatch.setattr(sizes, "too_large", lambda *_: {"lines a.py": 480, "lines c.py": 451})
    sizes.write()
    assert sizes.known() == {"lines a.py": 460}
