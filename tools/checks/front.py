"""The committed pages of the console belong to their sources: ``front/BUILT``, which ``make front`` writes, has hashes of both.

No Node is needed. ``make front-fresh`` builds the front again and compares, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.checks.tree import ROOT, Report

BUILT = "front/BUILT"
SOURCES = ("front/src", "front/build.mjs", "front/package.json", "front/package-lock.json")
OUTPUT = "src/tidelog/console/static"
REMEDY = "run make front and commit what it writes"


def listed(text: str) -> dict[str, str]:
    """Hash by path, of lines ``HASH  PATH``."""
    return {path: digest for digest, _, path in (line.partition("  ") for line in text.splitlines()) if path}


def found(root: Path = ROOT) -> dict[str, str]:
    """Hash by path, of each source and each built file."""
    paths = [
        path for name in (*SOURCES, OUTPUT) for path in ([root / name] if (root / name).is_file() else (root / name).rglob("*"))
    ]
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def judge(known: Mapping[str, str], there: Mapping[str, str]) -> Iterator[str]:
    """How the files differ from those of the last build."""
    for path in sorted({*known, *there}):
        if path not in there:
            yield f"{path} is gone since the front was built: {REMEDY}"
        elif path not in known:
            yield f"{path} is not of the last build of the front: {REMEDY}"
        elif known[path] != there[path]:
            yield f"{path} has changed since the front was built: {REMEDY}"


def check() -> Report:
    list_file = ROOT / BUILT
    if not list_file.exists():
        return Report([f"there is no {BUILT}: {REMEDY}"])
    there = found()
    return Report(list(judge(listed(list_file.read_text(encoding="utf-8")), there)), [f"{len(there)} files"])


def write() -> str:
    return f"nothing is listed here: {REMEDY}"
