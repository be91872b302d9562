"""No sentence of ours is Apache Kafka's: no string literal of more than five words equals one in its jars.

``known/kafka-sentences.b64`` holds hashes (40 bits each) of their sentences, so the check needs neither Java nor the jars and
none of their sentences stands in this tree. ``python -m tools.checks sentences --write`` makes it from the jars that
``tools/jars.py`` pins. ``known/sentences.txt`` lists the texts that may stand: those that a test of Apache Kafka compares, with
the name of the test class, and lines of a command that scripts read, with "format" and the reason. That list may only shrink.

Compared are whole literals, the parts of a literal between placeholders, and single sentences, as lists of lower-case words.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.checks.class_files import jar_strings
from tools.checks.tree import KNOWN, ROOT, Report, package_files, parsed

HASHES = KNOWN / "kafka-sentences.b64"
SUITES = KNOWN / "sentences.txt"
MORE_THAN = 5
DIGEST = 5
GAP = "\0"
TAG = re.compile(r"<[^<>]{1,80}>")
PLACEHOLDER = re.compile(r"[\x00-\x02]|%[-+#0-9.,]*[sdifxneb]|\{[a-z0-9_]*\}")
END = re.compile(r"[.!?;:](?:\s+|$)|\n\s*\n")
WORD = re.compile(r"[a-z0-9_]+(?:[.'-][a-z0-9_]+)*")


def words(text: str) -> str:
    """A text as lower-case words with a blank between each two."""
    return " ".join(WORD.findall(text.lower()))


def sentences(text: str) -> Iterator[str]:
    """All that is compared of one literal: whole, by its parts between placeholders, by its sentences. In normal form."""
    text = TAG.sub(" ", text)
    pieces = [PLACEHOLDER.sub(" ", text), *PLACEHOLDER.split(text)]
    seen = set()
    for piece in pieces:
        for part in (piece, *END.split(piece)):
            normal = words(part)
            if normal.count(" ") >= MORE_THAN and normal not in seen:
                seen.add(normal)
                yield normal


def digest(normal: str) -> bytes:
    """The hash that stands for a sentence."""
    return hashlib.sha256(normal.encode()).digest()[:DIGEST]


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, text) of every string literal; an f-string is one text with gaps for its expressions."""
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [
                part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else GAP for part in node.values
            ]
            yield node.lineno, "".join(parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def theirs(path: Path = HASHES) -> frozenset[bytes]:
    """The hashes of the sentences in the pinned jars."""
    data = base64.b64decode("".join(path.read_text(encoding="ascii").split()))
    return frozenset(data[at : at + DIGEST] for at in range(0, len(data), DIGEST))


def packed(texts: Iterable[str]) -> str:
    """The content of the file of hashes for these literals."""
    data = b"".join(sorted({digest(normal) for text in texts for normal in sentences(text)}))
    return "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 120)) + "\n"


def for_suites(path: Path = SUITES) -> set[str]:
    """The listed sentences in normal form. Each line has the suite, or the reason, then a colon and the text."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {normal for line in lines if line.strip() for normal in sentences(line.partition(": ")[2])}


def copied(files: Iterable[Path], root: Path, known: frozenset[bytes], allowed: set[str]) -> Iterator[tuple[str, str]]:
    """(file and line, sentence) of each literal that holds one of their sentences."""
    for path in files:
        for line, text in literals(parsed(path)):
            for normal in sentences(text):
                if digest(normal) in known and normal not in allowed:
                    yield f"{path.relative_to(root).as_posix()}:{line}", normal


def check() -> Report:
    found = list(copied(package_files(), ROOT, theirs(), for_suites()))
    listed = {normal for path in package_files() for _, text in literals(parsed(path)) for normal in sentences(text)}
    report = Report([f"{place}: {normal!r} is a sentence of Apache Kafka's: say it in our own words" for place, normal in found])
    report.findings += [
        f"known/sentences.txt lists {normal!r}, which we do not say: remove the line"
        for normal in sorted(for_suites())
        if normal not in listed
    ]
    return report


def write() -> str:
    """Make the file of hashes from the jars that tools/jars.py pins."""
    from tools import jars

    folder = jars.ensure()
    texts = [text for jar in sorted(folder.glob("kafka*.jar")) for text in jar_strings(jar)]
    HASHES.write_text(packed(texts), encoding="ascii")
    return f"{len(theirs())} sentences of {folder.name}"
