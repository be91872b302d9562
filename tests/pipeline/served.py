"""Systems around a pipeline that run in a process of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.interop.availability import unavailable
from tests.systems.relays import serving
from tools.jars import JarsMissing


@contextlib.contextmanager
def served(system: str, folder: Path) -> Iterator[str]:
    """The address of a system in a process of its own; a skip, or a failure on CI, where its jars cannot be had."""
    try:
        with serving(system, folder / system) as address:
            yield address
    except JarsMissing as missing:
        unavailable(missing)
