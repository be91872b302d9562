"""Room for compiled code in Spark's JVMs, whichever compiler their options choose."""

from __future__ import annotations

import re

CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""The code cache that HotSpot reserves when both compilers are on."""

OPTIONS = tuple(f"spark.{process}.{kind}JavaOptions" for process in ("driver", "executor") for kind in ("default", "extra"))
"""Spark's settings that hold JVM options."""

_ONE_COMPILER = re.compile(r"(?:^|\s)-XX:(?:TieredStopAtLevel=[0-3]|-TieredCompilation|CompilationMode=(?!default)\S+)(?=\s|$)")


def with_room_for_code(options: str) -> str:
    """``options`` with a code cache of 240 MiB where they would leave 48 MiB; a size in them is kept.

    HotSpot reserves 48 MiB for compiled code when its options leave it one compiler. A query that merges into Delta tables fills
    that within a minute, and the JVM fails: "Out of space in CodeCache for adapters".
    """
    small = _ONE_COMPILER.search(options) is not None and "-XX:ReservedCodeCacheSize=" not in options
    return f"{options} {CODE_CACHE}" if small else options
