"""Words that the style page in CONTRIBUTING.md rules out, counted in prose: sources, docs, and the docstrings of tests.

``known/words.txt`` holds how many are left in each room (a package, a folder of docs). A room may go down, never up.
``python -m tools.checks words --list src/tidelog/storage`` prints every place below a path. Between the marks ``words: off`` and
``words: on`` in a Markdown file nothing is counted: that is where bad examples stand.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.checks.tree import KNOWN, ROOT, Report, parsed, tracked

LIST = KNOWN / "words.txt"
RULES: tuple[tuple[str, str], ...] = (
    (r"\bwho(?:so)?ever\b", "name the thing: the client, the caller"),
    (r"\bsomebody\b|\bsomeone\b", "name the thing: another client, a user"),
    (r"\bnobody\b", "no client, no thread, no caller"),
    (r"\banew\b", "again"),
    (
        r"\b(?:is|are|was|were|be|been|being|gets?)\s+told\b|\btold\s+(?:of|apart|by|as|from)\b|\btells?\s+of\b",
        "reports, receives, learns, differs",
    ),
    (r"\b(?:has|have|had)(?:\s+not)?\s+got\b|\bhas\s+it\s+got\b", "has, does not have"),
    (r"\bheld\s+against\b|\bhold(?:s|ing)?\s+\w+\s+against\b", "compared with"),
    (r"\b(?:goes|go|going|went|gone)\s+on\s+with\b", "continues with, resumes"),
    (r"\bof\s+(?:his|theirs)\b", "its, the client's"),
    (
        r"(?:^|(?<=[.:;]\s)|(?<=\"\"\"))The same\b(?=[,.:;]|\s+(?:for|of|in|as|with|by|at|from)\b)",
        "say what it is: the sentence has lost its antecedent",
    ),
    (
        r"(?:^|(?<=[.:;]\s)|(?<=\"\"\"))(?:Who|Whom|Whose)\b(?=\s+(?:has|have|is|was|needs?|wants?|asks?|keeps?|reads?|writes?|may|can|does|knows?)\b)",
        "make the thing the subject",
    ),
    (r"\b(?:may|must|can)\s+be\s+of\s+use\b|\bcomes?\s+into\s+being\b|\bcame\s+into\s+being\b", "is created"),
    (r"\blets?\s+(?:itself|himself)\b", "can be"),
    (r"\bso\s+many\s+at\s+once\b|\bof\s+(?:old|late)\b|\bthence\b|\bwherewith\b|\bthereupon\b", "plain words"),
)
PATTERNS = tuple(
    (re.compile(pattern, re.MULTILINE | (re.IGNORECASE if "(?:^|" not in pattern else 0)), remedy) for pattern, remedy in RULES
)
OFF = re.compile(r"<!-- words: off -->.*?<!-- words: on -->", re.DOTALL)
SKIPPED = ("src/tidelog/protocol/messages/", "tools/checks/", "tests/unit/tools/checks/", "docs/adr/credits")


def room(name: str) -> str:
    """The budget that a file counts against: ``src/tidelog/storage``, ``docs/guide``, ``README.md``, ``tests``."""
    parts = name.split("/")
    if parts[0] == "src" and len(parts) > 3:
        return "/".join(parts[:3])
    if parts[0] == "docs" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(first line, text) of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                yield first.lineno, first.value.value


def prose(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """The parts of a file that are judged, with the line at which each begins."""
    if name.startswith("tests/") and path.suffix == ".py":
        yield from docstrings(parsed(path))
        return
    text = path.read_text(encoding="utf-8")
    yield 1, OFF.sub(lambda match: "\n" * match.group().count("\n"), text) if path.suffix == ".md" else text


def offences(text: str, first_line: int = 1) -> Iterator[tuple[int, str, str]]:
    """(line, words, remedy) for each match, in the order of the text."""
    found = [(match.start(), match.group(), remedy) for pattern, remedy in PATTERNS for match in pattern.finditer(text)]
    for start, words, remedy in sorted(found):
        yield first_line + text.count("\n", 0, start), " ".join(words.split()), remedy


def judged(files: Iterable[Path], root: Path) -> Iterator[tuple[str, int, str, str]]:
    """(file, line, words, remedy) over all files of the tree that hold prose."""
    for path in files:
        name = path.relative_to(root).as_posix()
        if path.suffix not in {".py", ".md"} or name.startswith(SKIPPED):
            continue
        if name.startswith(("src/", "docs/", "tests/", "demo/", "changelog.d/")) or "/" not in name:
            for first, text in prose(path, name):
                for line, words, remedy in offences(text, first):
                    yield name, line, words, remedy


def places(prefix: str) -> list[str]:
    """Every offence in files whose names begin with ``prefix``, as ``file:line: words: remedy``."""
    every = judged(tracked(), ROOT)
    return [f"{name}:{line}: {words!r}: {remedy}" for name, line, words, remedy in every if name.startswith(prefix)]


def current() -> Counter[str]:
    """How many offences each room has."""
    return Counter(room(name) for name, _, _, _ in judged(tracked(), ROOT))


def known() -> dict[str, int]:
    """How many each room may have."""
    rows = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines() if line.strip()) if LIST.exists() else ()
    return {name: int(count) for name, count in rows}


def compare(found: Counter[str], allowed: dict[str, int]) -> list[str]:
    """The rooms with more offences than the list allows."""
    return [
        f"{name} has {count} of the words that CONTRIBUTING.md rules out, {allowed.get(name, 0)} allowed: "
        f"python -m tools.checks --list {name}"
        for name, count in sorted(found.items())
        if count > allowed.get(name, 0)
    ]


def check() -> Report:
    found, allowed = current(), known()
    notes = [f"{found.total()} words to rewrite, {sum(allowed.values())} allowed"]
    if found.total() < sum(allowed.values()):
        notes.append("fewer than allowed: python -m tools.checks words --write")
    return Report(compare(found, allowed), notes)


def write() -> str:
    """Lower the budget of each room to what it has. Rooms never go up; a new room is listed only while there is no list."""
    found, allowed = current(), known()
    lower = {
        name: min(count, allowed[name]) if name in allowed else count
        for name, count in found.items()
        if name in allowed or not allowed
    }
    LIST.write_text("".join(f"{name} {count}\n" for name, count in sorted(lower.items())), encoding="utf-8")
    return f"{sum(lower.values())} allowed"
