"""CHANGELOG.md is built from fragments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.changelog import HEAD, WrongFragment, fragments, main, page


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "changelog.d"
    folder.mkdir()
    (folder / "b.added.md").write_text("A broker\nfor tests.\n")
    (folder / "a.added.md").write_text("A client.\n")
    (folder / "x.fixed.md").write_text("A fault.\n")
    (folder / "c.changed.md").write_text("Another default.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nOld words.\n")
    return tmp_path


def test_before_the_first_release_fixes_are_no_news(root: Path) -> None:
    assert page(root / "changelog.d", "") == (
        HEAD + "\n## Not released yet\n\n### Added\n\n- A client.\n- A broker for tests.\n\n### Changed\n\n- Another default.\n"
    )


def test_a_release_takes_the_fragments_and_the_next_one_lists_fixes(root: Path) -> None:
    assert main(["--release", "0.1.0"], root) == 0
    assert list((root / "changelog.d").iterdir()) == []
    assert main(["--check"], root) == 0
    (root / "changelog.d" / "y.fixed.md").write_text("The fault is mended.\n")
    assert main(["--check"], root) == 1
    assert main([], root) == 0
    text = (root / "CHANGELOG.md").read_text()
    assert "### Fixed\n\n- The fault is mended.\n\n## 0.1.0 (" in text
    assert "A fault." not in text


def test_a_wrong_kind_and_an_empty_fragment_are_refused(root: Path) -> None:
    (root / "changelog.d" / "z.md").write_text("What is it?")
    with pytest.raises(WrongFragment, match=r"z\.md: its name ends in none"):
        fragments(root / "changelog.d", released=True)
    assert main([], root) == 1
    (root / "changelog.d" / "z.md").unlink()
    (root / "changelog.d" / "e.added.md").write_text("\n")
    with pytest.raises(WrongFragment, match="is empty"):
        fragments(root / "changelog.d", released=True)
