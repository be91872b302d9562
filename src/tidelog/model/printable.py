"""Text of others, such as the names that clients choose, for a log, a table or a terminal: on one line, and without the sequences
that control a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text, with escapes in place of line breaks, control characters and what has no glyph."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
