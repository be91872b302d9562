"""Guides and README import only what the public packages export in ``__all__``.

Nothing is imported for it: ``__all__`` is a literal in each package's ``__init__.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.checks.tree import ROOT, Report, parsed

PUBLIC = ("tidelog.testing", "tidelog.pipeline", "tidelog.spark", "tidelog.client")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
Exports = Mapping[str, frozenset[str]]


def exports(source: Path) -> dict[str, frozenset[str]]:
    """What each public package has in ``__all__``, nothing where it has none. A package named there is public, too."""
    found: dict[str, frozenset[str]] = {}
    waiting = list(PUBLIC)
    while waiting:
        package = waiting.pop(0)
        folder = source.joinpath(*package.split("."))
        found[package] = exported(folder / "__init__.py")
        waiting += [f"{package}.{name}" for name in sorted(found[package]) if (folder / name / "__init__.py").exists()]
    return found


def exported(path: Path) -> frozenset[str]:
    """The literal ``__all__`` of a module; empty where there is none."""
    for node in parsed(path).body if path.exists() else ():
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def refused(code: str, public: Exports) -> Iterator[str]:
    """The imports of a block of code that are not public, and attributes of public packages that are not exported."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tidelog":
            for alias in node.names:
                if alias.name not in public.get(node.module or "", ()):
                    yield f"from {node.module} import {alias.name}"
        elif isinstance(node, ast.Import):
            yield from (
                f"import {each.name}" for each in node.names if each.name.startswith("tidelog") and each.name not in public
            )
        elif isinstance(node, ast.Attribute):
            base = ast.unparse(node.value)
            if base in public and node.attr not in public[base]:
                yield f"{base}.{node.attr}"


def judge(text: str, public: Exports) -> Iterator[tuple[int, str]]:
    """(line, import) for each import of a page that is not public."""
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        try:
            yield from ((line, name) for name in refused(block.group(1), public))
        except SyntaxError:
            yield line, "a block that is no Python"


def pages(root: Path = ROOT) -> list[Path]:
    """README and every guide."""
    return [root / "README.md", *sorted((root / "docs" / "guide").glob("*.md"))]


def check() -> Report:
    public = exports(ROOT / "src")
    findings = [
        f"{page.relative_to(ROOT)}:{line}: {name}: not in a public package's __all__"
        for page in pages()
        for line, name in judge(page.read_text(encoding="utf-8"), public)
    ]
    return Report(findings, [f"{sum(map(len, public.values()))} public names"])


def write() -> str:
    return "nothing is listed: the guides import public names only"
