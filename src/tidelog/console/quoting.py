"""Words of a command line that is shown to be pasted: names come from any client of the cluster, so none may become a command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def word(text: str) -> str:
    """One word of a shell, on one line. Control characters, which would end a paste or move the cursor, stand in ``$'...'``."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(each if each.isprintable() and each not in "'\\" else _escaped(each) for each in text) + "'"


def joined(texts: Iterable[str]) -> str:
    """Words with blanks between them."""
    return " ".join(map(word, texts))


def _escaped(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))
