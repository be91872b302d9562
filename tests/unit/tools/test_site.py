"""Pages of the site: links of their new places, and API pages from ``__all__``."""

from __future__ import annotations

from pathlib import Path

from tools.site import api_page, gather, homes, moved, rewritten


def test_links_follow_the_pages_to_their_new_places() -> None:
    assert moved("docs/guide/cluster.md", Path("README.md")) == "guide/cluster.md"
    assert moved("../../ARCHITECTURE.md", Path("docs/guide/x.md")) == "architecture.md"
    assert moved("docs/adr", Path("README.md")) == "adr/index.md"
    assert moved("../../src/tidelog", Path("docs/guide/x.md")) is None


def test_links_are_relative_and_those_out_of_the_site_become_file_names() -> None:
    text = "[a](../internals/groups.md#x) [b](../../demo/pipeline.yaml) [c](https://example.org) [d](../../README.md)"
    assert rewritten(text, Path("docs/guide/p.md"), Path("guide/p.md")) == (
        "[a](../internals/groups.md#x) b (`demo/pipeline.yaml`) [c](https://example.org) [d](../index.md)"
    )


def test_an_api_page_has_the_docstring_and_every_public_name(tmp_path: Path) -> None:
    package = tmp_path / "tidelog" / "testing"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "__init__.py").write_text("")
    (package / "__init__.py").write_text(
        '"""What it is."""\nfrom tidelog.testing.broker import Broker\nfrom tidelog.testing import inner\n'
    )
    assert homes("tidelog.testing", tmp_path)["Broker"] == "tidelog.testing.broker.Broker"
    page = api_page("tidelog.testing", frozenset({"Broker", "inner", "here"}), tmp_path)
    assert page == "# tidelog.testing\n\nWhat it is.\n\n::: tidelog.testing.broker.Broker\n\n::: tidelog.testing.here\n"


def test_all_pages_of_the_repository_are_gathered(tmp_path: Path) -> None:
    gather(tmp_path / "site")
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.md")}
    assert {
        "index.md",
        "architecture.md",
        "guide/testing.md",
        "guide/index.md",
        "adr/index.md",
        "api/testing.md",
        "api/index.md",
    } <= pages
    assert "::: tidelog.testing.broker.Broker" in (tmp_path / "site" / "api" / "testing.md").read_text()
