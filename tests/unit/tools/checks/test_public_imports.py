"""Imports of guides are public, or they are found."""

from __future__ import annotations

from pathlib import Path

from tools.checks.public_imports import exports, judge

PUBLIC = {"tidelog.testing": frozenset({"Broker", "checker"}), "tidelog.testing.checker": frozenset({"check"})}


def page(code: str) -> str:
    return f"Text.\n\n```python\n{code}\n```\n\n```console\n$ from tidelog.server import Node\n```\n"


def test_public_imports_pass() -> None:
    lines = [
        "import confluent_kafka",
        "from tidelog.testing import Broker",
        "from tidelog.testing.checker import check",
        "import tidelog.testing",
    ]
    assert list(judge(page("\n".join(lines)), PUBLIC)) == []


def test_a_private_import_is_found_with_its_block() -> None:
    assert list(judge(page("from tidelog.server.node import Node"), PUBLIC)) == [(3, "from tidelog.server.node import Node")]
    assert list(judge(page("from tidelog.testing import group_sessions"), PUBLIC)) != []
    assert list(judge(page("import tidelog.server"), PUBLIC)) == [(3, "import tidelog.server")]
    assert list(judge(page("import tidelog.testing\ntidelog.testing.hidden()"), PUBLIC)) == [(3, "tidelog.testing.hidden")]


def test_a_block_that_does_not_parse_is_found() -> None:
    assert list(judge(page("def"), PUBLIC)) == [(3, "a block that is no Python")]


def test_exports_are_read_from_the_literal_all_and_packages_in_it_are_public(tmp_path: Path) -> None:
    for name, text in {
        "testing": '__all__ = ["Broker", "checker"]\n',
        "testing/checker": '__all__ = ["check"]\n',
        "spark": "",
    }.items():
        folder = tmp_path / "tidelog" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
    found = exports(tmp_path)
    assert found["tidelog.testing"] == {"Broker", "checker"}
    assert found["tidelog.testing.checker"] == {"check"}
    assert found["tidelog.spark"] == found["tidelog.client"] == set()
