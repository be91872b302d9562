"""Whether a property's name matches a pattern.

Patterns come from clients: RE2 needs time linear in the name, Python's ``re`` may need exponential time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

MAX_BYTES = 1 << 18
"""Memory for one pattern."""
MAX_PATTERN = 4096
"""Characters: whether a longer pattern matches is not known."""
PER_STEP = 5000
"""Instructions times characters, at most, that a match may take for one step of a comparison: about 25 microseconds."""


def cost(pattern: str, name: str) -> int:
    """Steps that a match counts for: linear is not quick where a pattern has thousands of instructions."""
    compiled = _compiled(pattern)
    return 1 if compiled is None else 1 + compiled.programsize * len(name) // PER_STEP


def matches(pattern: str, name: str) -> bool | None:
    """None if it cannot be known: RE2 does not have look-around and back-references, and may not be installed."""
    compiled = _compiled(pattern)
    return None if compiled is None else compiled.search(name) is not None


def _compiled(pattern: str) -> Any:
    """None for a long pattern before anything of it is kept."""
    return None if len(pattern) > MAX_PATTERN else _kept(pattern)


@lru_cache(maxsize=256)
def _kept(pattern: str) -> Any:
    try:
        import re2
    except ModuleNotFoundError:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
