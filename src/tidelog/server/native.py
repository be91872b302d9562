"""Which compiled modules a node uses: those that were compiled when it was installed, unless ``TIDELOG_PURE=1`` is set.

A lane answers the plain requests of one API as the Python code beside it does, faster (docs/internals/native-lane.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from tidelog.broker.dispatch import MakeLane
from tidelog.server import posix
from tidelog.server.disk import Descriptor, DiskFile


def compiled(module: str, name: str) -> Callable[..., Any] | None:
    """A function of a compiled module; None where it was not compiled or is not wanted."""
    if os.environ.get("TIDELOG_PURE") == "1":
        return None
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except ImportError:
        return None
    return function


def fetch_lanes() -> MakeLane | None:
    """Makes lanes of consumers' plain Fetches; None without a compiled one."""
    return compiled("tidelog.server.serving._fetch_lane", "fetch_lane")


def produce_lanes() -> MakeLane | None:
    """Makes lanes of plain Produces; None without a compiled one."""
    make = compiled("tidelog.broker._produce_lane", "produce_lane")
    if make is None or not posix.HAS_POSITIONS:
        return make
    return partial(make, disk_file=DiskFile, descriptor=Descriptor)


def read_steps() -> Callable[..., Any] | None:
    """Makes what plain-text connections call when bytes arrive, in place of ``Connection._readable``; None without a compiled
    one."""
    return compiled("tidelog.server.serving._read_step", "read_step") if posix.HAS_POSITIONS else None
