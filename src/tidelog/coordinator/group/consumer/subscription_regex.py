"""Resolves a subscription by pattern (KIP-848): RE2 syntax, and the whole name must match, as in Kafka.

Only RE2 is used: any client can send a pattern, and RE2 takes time linear in the name and bounded memory whatever the pattern,
while ``re`` of the standard library takes exponential time for some. The library is imported with the first pattern. A node
without it serves everything else, and refuses a pattern with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

MAX_MEMORY = 8 << 20
"""Bytes that RE2 may use for one compiled pattern; a pattern that needs more is refused. RE2's own default."""

MAX_LENGTH = 16_384
"""Characters of a pattern, far more than real patterns need; Kafka sets no limit of its own."""


class InvalidRegex(Exception):
    """An unusable pattern; ``message`` says why, ready for the response INVALID_REGULAR_EXPRESSION (128)."""

    def __init__(self, pattern: str, reason: str) -> None:
        shown = pattern if len(pattern) <= 256 else pattern[:256] + "..."
        self.message = f"SubscribedTopicRegex `{shown}` cannot be compiled as RE2: {reason}."
        super().__init__(self.message)


class _Compiled(Protocol):
    def fullmatch(self, text: str) -> object: ...


def check(pattern: str) -> None:
    """Raises ``InvalidRegex`` when ``resolve`` would, without looking at topics."""
    _compile(pattern)


def resolve(pattern: str, topic_names: Iterable[str]) -> frozenset[str]:
    """The names that the pattern matches in full. Raises ``InvalidRegex``."""
    compiled = _compile(pattern)
    return frozenset(name for name in topic_names if compiled.fullmatch(name) is not None)


def _compile(pattern: str) -> _Compiled:
    if len(pattern) > MAX_LENGTH:
        raise InvalidRegex(pattern, f"it has {len(pattern)} characters, and {MAX_LENGTH} are the limit")
    try:
        import re2
    except ImportError:
        raise InvalidRegex(
            pattern,
            "this node has no RE2 to evaluate it; install google-re2 on the node, or subscribe by names",
        ) from None
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        compiled: _Compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidRegex(pattern, _reason(error)) from None
    return compiled


def _reason(error: Exception) -> str:
    found = error.args[0] if error.args else "it cannot be parsed"
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
