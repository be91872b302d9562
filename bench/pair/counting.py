"""Instructions instead of time: the same on a busy machine as on a quiet one.

Nodes and tools run under valgrind's callgrind, which counts the instructions of user mode. The kernel's share (half of a produce)
is not in it, nor are caches and branches: a verdict by instructions says that our code does not do more, not that it is as fast.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

from bench.pair.processes import Failed, run

WAIT_S = 120.0
_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.M)


class NoValgrind(Exception):
    """valgrind is not installed."""


def prefix(out: Path, *, from_start: bool) -> list[str]:
    """What a command is put behind. Counts stand in ``out`` at its end, in ``out.N`` for each dump. Raises NoValgrind."""
    if shutil.which("valgrind") is None:
        raise NoValgrind("no valgrind: install it, or measure time")
    counting = "yes" if from_start else "no"
    return ["valgrind", "--tool=callgrind", f"--instr-atstart={counting}", f"--callgrind-out-file={out}", "-q"]


def parse_total(text: str) -> int:
    """Instructions in a file of callgrind's. ValueError when it has none."""
    found = _TOTAL.search(text)
    if found is None:
        raise ValueError("callgrind's file has no total")
    return int(found[1])


def control(pid: int, *words: str) -> None:
    """Send callgrind a command. Raises Failed."""
    run(
        ["vgdb", f"--pid={pid}", "--wait=60", "--max-invoke-ms=100", *words],
        {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        Path("/"),
        WAIT_S,
    )


def begin(pid: int) -> None:
    """Count from now on, from zero."""
    control(pid, "instrumentation", "on")
    control(pid, "zero")


def dump(pid: int, out: Path) -> int:
    """The count since the last ``begin`` or dump."""
    before = set(out.parent.glob(f"{out.name}.*"))
    control(pid, "dump")
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        for path in set(out.parent.glob(f"{out.name}.*")) - before:
            text = path.read_text(errors="replace")
            if _TOTAL.search(text):
                return parse_total(text)
        time.sleep(0.05)
    raise Failed(f"callgrind wrote no {out.name} within {WAIT_S:.0f} s")


def stop(pid: int) -> None:
    """Count no more: the process is several times faster."""
    control(pid, "instrumentation", "off")
