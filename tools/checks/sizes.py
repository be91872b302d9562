"""Sizes: a module has at most 450 lines, a class at most 300 lines and 25 methods. The median of all modules is printed.

``known/sizes.txt`` holds what is larger today, with its size, and may only shrink. ``known/large-classes.txt`` lists the classes
that stay large, at most five, each with a written reason.
"""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.checks.tree import KNOWN, ROOT, Report, package_files, parsed

LIST = KNOWN / "sizes.txt"
REASONS = KNOWN / "large-classes.txt"
MODULE_LINES = 450
CLASS_LINES = 300
METHODS = 25
MOST_REASONS = 5
Sizes = dict[str, int]


def too_large(files: Iterable[Path], root: Path, reasons: Iterable[str] = ()) -> Sizes:
    """What is over a limit, by name: ``lines FILE``, ``lines FILE:CLASS`` and ``methods FILE:CLASS``."""
    return {key: size for path in files for key, size in _of_module(path, path.relative_to(root).as_posix(), set(reasons))}


def _of_module(path: Path, name: str, reasons: set[str]) -> Iterator[tuple[str, int]]:
    lines = path.read_text(encoding="utf-8").count("\n")
    if lines > MODULE_LINES:
        yield f"lines {name}", lines
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ClassDef) or f"{name}:{node.name}" in reasons:
            continue
        long = (node.end_lineno or node.lineno) - node.lineno + 1
        methods = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body)
        if long > CLASS_LINES:
            yield f"lines {name}:{node.name}", long
        if methods > METHODS:
            yield f"methods {name}:{node.name}", methods


def compare(found: Sizes, known: Sizes, reasons: dict[str, str]) -> list[str]:
    """What is over a limit and not listed, or larger than listed; lines of the lists that hold no more."""
    findings = [
        f"{key}: {size}, at most {known.get(key, 'none listed')}: cut it by question"
        for key, size in found.items()
        if size > known.get(key, 0)
    ]
    findings += [
        f"known/sizes.txt lists {key}, which is small now: python -m tools.checks sizes --write"
        for key in known
        if key not in found
    ]
    if len(reasons) > MOST_REASONS:
        findings.append(f"known/large-classes.txt has {len(reasons)} classes, at most {MOST_REASONS}")
    findings += [
        f"known/large-classes.txt gives no reason for {name}" for name, reason in reasons.items() if len(reason.split()) < 5
    ]
    return findings


def known() -> Sizes:
    """The listed sizes."""
    rows = (
        (line.rsplit(" ", 1) for line in LIST.read_text(encoding="utf-8").splitlines() if line.strip()) if LIST.exists() else ()
    )
    return {key: int(size) for key, size in rows}


def written_reasons() -> dict[str, str]:
    """``FILE:CLASS`` and why that class stays large."""
    lines = REASONS.read_text(encoding="utf-8").splitlines() if REASONS.exists() else []
    return {name: reason.strip() for name, _, reason in (line.partition(" ") for line in lines if line.strip())}


def check() -> Report:
    reasons = written_reasons()
    files = package_files()
    sizes = [path.read_text(encoding="utf-8").count("\n") for path in files]
    over = len(known())
    note = f"modules: median {statistics.median(sizes):.0f} lines, largest {max(sizes)}; {over} sizes over a limit are listed"
    return Report(compare(too_large(files, ROOT, reasons), known(), reasons), [note])


def write() -> str:
    """Lower the listed sizes to what is there. Nothing is added, except where there is no list."""
    found, before = too_large(package_files(), ROOT, written_reasons()), known()
    kept = {key: min(size, before.get(key, size)) for key, size in found.items() if key in before or not before}
    LIST.write_text("".join(f"{key} {size}\n" for key, size in sorted(kept.items())), encoding="utf-8")
    return f"{len(kept)} sizes over a limit"
