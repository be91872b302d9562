"""CPU seconds of Spark's processes, and environments with other versions of PySpark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.interop.nodes import ROOT
from tools.jars import cache

TICKS = os.sysconf("SC_CLK_TCK")
NEEDED = ("pyarrow>=18", "pandas>=2.2,<3", "confluent-kafka")


def _table() -> dict[int, tuple[int, float]]:
    """Process -> (its parent, CPU seconds of it and of its children that have ended)."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            found[int(entry.name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
    return found


def cpu_seconds(roots: Iterable[int], without: Iterable[int] = ()) -> float:
    """Of these processes and all below them; ``without``: branches that do not count, such as a broker's."""
    table, left_out = _table(), set(without)
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    total, below = 0.0, [pid for pid in roots if pid in table]
    while below:
        pid = below.pop()
        if pid not in left_out:
            total += table[pid][1]
            below += children.get(pid, [])
    return total


def python_with(version: str) -> Path:
    """A Python with another PySpark, made once in the cache."""
    folder = cache() / f"pyspark-{version}-python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        print(f"setting up PySpark {version} in {folder} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, f"pyspark=={version}", *NEEDED, "-e", str(ROOT)], check=True)
        (folder / ".done").touch()
    return python
