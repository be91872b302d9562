"""Which compiled lanes a node uses: those that were compiled when it was installed, unless ``TIDELOG_PURE=1`` is set.

A lane answers the plain requests of one API as the Python code beside it does, faster (docs/internals/native-lane.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from tidelog.broker.dispatch import MakeLane
from tidelog.server import posix
from tidelog.server.disk import Descriptor, DiskFile


def fetch_lanes() -> MakeLane | None:
    """Makes lanes of consumers' plain Fetches; None where they were not compiled or are not wanted."""
    if os.environ.get("TIDELOG_PURE") == "1":
        return None
    try:
        from tidelog.server.serving._fetch_lane import fetch_lane
    except ImportError:
        return None
    make: MakeLane = fetch_lane
    return make


def produce_lanes() -> MakeLane | None:
    """Makes lanes of plain Produces; None where they were not compiled or are not wanted."""
    if os.environ.get("TIDELOG_PURE") == "1":
        return None
    try:
        from tidelog.broker._produce_lane import produce_lane
    except ImportError:
        return None
    written = {"disk_file": DiskFile, "descriptor": Descriptor} if posix.HAS_POSITIONS else {}
    return partial(produce_lane, **written)


def read_steps() -> Callable[..., Any] | None:
    """Makes what plain-text connections call when bytes arrive, in place of ``Connection._readable``; None where it was not
    compiled or is not wanted."""
    if os.environ.get("TIDELOG_PURE") == "1" or not posix.HAS_POSITIONS:
        return None
    try:
        from tidelog.server.serving._read_step import read_step
    except ImportError:
        return None
    make: Callable[..., Any] = read_step
    return make
