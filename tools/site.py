"""The documentation site: ``python tools/site.py`` gathers its pages in ``build/site-docs`` and lets MkDocs build ``build/site``.

Pages are ``docs/``, the pages at the root of the repository, and one API page for each public package, with the docstrings of all
that its ``__all__`` names. A link that leads nowhere ends the build (``strict``). Nothing is fetched from other hosts.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

from tools.checks.public_imports import exports  # noqa: E402
from tools.checks.tree import parsed  # noqa: E402

STAGE = ROOT / "build" / "site-docs"
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def moved(target: str, page: Path) -> str | None:
    """Where a link of ``page`` (a path in the repository) leads, from the root of the site; None when out of it."""
    path = Path(os.path.normpath(page.parent / target))
    name = path.as_posix()
    if name in ROOT_PAGES:
        return ROOT_PAGES[name]
    if path.parts and path.parts[0] == "docs":
        inside = Path(*path.parts[1:])
        return (inside / "index.md" if (ROOT / path).is_dir() else inside).as_posix()
    return None


def rewritten(text: str, page: Path, home: Path) -> str:
    """A page's text with the links of its new place ``home``; what is no page of the site becomes the name of a file."""

    def link(match: re.Match[str]) -> str:
        label, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        if "://" in target or target.startswith("mailto:"):
            return match.group()
        new = moved(target, page)
        if new is None or not new.endswith(".md"):
            return f"{label} (`{os.path.normpath(page.parent / target)}`)"
        return f"[{label}]({os.path.relpath(new, home.parent)}{anchor})"

    return LINK.sub(link, text)


def homes(package: str, source: Path) -> dict[str, str]:
    """For each name that a package imports from its modules: its full path."""
    init = source.joinpath(*package.split(".")) / "__init__.py"
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(parsed(init))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidelog.")
        for alias in node.names
    }


def api_page(package: str, names: frozenset[str], source: Path) -> str:
    """The page of a package: its own docstring, then each public name that is no package."""
    init = source.joinpath(*package.split(".")) / "__init__.py"
    known = homes(package, source)
    rest = sorted(name for name in names if not (init.parent / name / "__init__.py").exists())
    parts = [f"# {package}\n\n{(ast.get_docstring(parsed(init)) or '').strip()}\n"]
    parts += [f"::: {known.get(name, f'{package}.{name}')}\n" for name in rest]
    return "\n".join(parts)


def index_page(folder: Path) -> str:
    """A list of the pages of a folder, by their headings."""
    pages = sorted(path for path in folder.glob("*.md") if path.name != "index.md")
    heads = ((path.name, path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")) for path in pages)
    return f"# {folder.name.capitalize()}\n\n" + "".join(f"- [{head}]({name})\n" for name, head in heads)


def gather(stage: Path = STAGE) -> None:
    """Write all pages of the site below ``stage``."""
    shutil.rmtree(stage, ignore_errors=True)
    pages = {Path(name): Path(home) for name, home in ROOT_PAGES.items()}
    pages |= {path.relative_to(ROOT): path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))}
    for page, home in pages.items():
        target = stage / home
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rewritten((ROOT / page).read_text(encoding="utf-8"), page, home), encoding="utf-8")
    (stage / "api").mkdir()
    for package, names in exports(ROOT / "src").items():
        if names:
            (stage / "api" / f"{package.removeprefix('tidelog.')}.md").write_text(
                api_page(package, names, ROOT / "src"), encoding="utf-8"
            )
    for folder in sorted(path for path in stage.iterdir() if path.is_dir()):
        (folder / "index.md").write_text(index_page(folder), encoding="utf-8")


def main() -> int:
    gather()
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
