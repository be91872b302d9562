"""Replaces pieces of shipped code for a while, to plant bugs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Patch = tuple[object, str, Any]
"""A module or a class, a name in it, and the replacement."""


@contextmanager
def patched(patches: Iterable[Patch]) -> Iterator[None]:
    """Applies these patches and restores the originals afterwards."""
    patches = list(patches)
    former = [(where, name, vars(where)[name]) for where, name, _ in patches]
    for where, name, bug in patches:
        setattr(where, name, bug)
    try:
        yield
    finally:
        for where, name, honest in former:
            setattr(where, name, honest)
