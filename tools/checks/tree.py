"""Which files the checks read, and the form in which a check reports."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).resolve().parent / "known"


@dataclass
class Report:
    """What a check found: ``findings`` fail the build, ``notes`` are printed and do not."""

    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def tracked(root: Path = ROOT) -> list[Path]:
    """The files that git knows or would add, sorted."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted(path for name in names if name and (path := root / name).is_file())


def package_files(root: Path = ROOT) -> list[Path]:
    """The hand-written modules of the package, sorted: generated messages are left out."""
    generated = root / "src" / "tidelog" / "protocol" / "messages"
    return sorted(path for path in (root / "src").rglob("*.py") if generated not in path.parents)


@lru_cache(maxsize=2048)
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))
