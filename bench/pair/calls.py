"""``python -m bench.pair.calls OLD NEW ROW``: which functions a node calls more often, or less, for a request of a row.

For a regression that ``--count instructions`` has found. Calls are counted by cProfile, so that the same requests give the same
numbers on a busy machine; what a call costs is not counted. A function that was moved or renamed shows once with each sign.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.pair import servers
from bench.pair.checkouts import Checkout, checked_out
from bench.pair.processes import Failed, ended_by_signals
from bench.pair.rounds import Bench, Plan
from bench.pair.rows import LOADS, Load
from bench.pair.servers import Server

PROBE = Path(__file__).with_name("profiled_node.py")
WAIT_S = 60.0


def differences(old: Mapping[str, float], new: Mapping[str, float], least: float = 0.01) -> list[tuple[float, str, float, float]]:
    """(new less old, function, old, new), by size; those below ``least`` calls a request are background work."""
    found = [(new.get(name, 0) - old.get(name, 0), name, old.get(name, 0), new.get(name, 0)) for name in {*old, *new}]
    return sorted((each for each in found if abs(each[0]) >= least), key=lambda each: (-abs(each[0]), each[1]))


def profiled(checkout: Checkout, home: Path) -> tuple[Server, Path]:
    """A node under cProfile, and where its calls will stand."""
    out = home / "calls.json"
    return servers.node(checkout, home, 0, probe=(PROBE, out)), out


def calls(checkout: Checkout, load: Load, folder: Path) -> dict[str, float]:
    """Calls a request, by function."""
    home = folder / f"{checkout.tree.name}-profiled"
    home.mkdir()
    server, out = profiled(checkout, home)
    try:
        bench = Bench(load, server, Plan(folder, count=True, scale=1.0))
        os.kill(server.pids[0], signal.SIGUSR1)
        time.sleep(0.5)  # until the node has handled it
        result = bench.run(load.counted)
        os.kill(server.pids[0], signal.SIGUSR2)
        deadline = time.monotonic() + WAIT_S
        while not out.exists():
            if time.monotonic() > deadline:
                raise Failed("the node wrote no profile")
            time.sleep(0.05)
        found: dict[str, int] = json.loads(out.read_text())
        return {name: count / result.requests for name, count in found.items()}
    finally:
        server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pair.calls", description=__doc__)
    parser.add_argument("old", metavar="OLD", help="a revision, or the path of a work tree")
    parser.add_argument("new", metavar="NEW", help="a revision, or the path of a work tree")
    parser.add_argument("row", choices=[load.name for load in LOADS if load.group == "node"])
    args = parser.parse_args()
    (load,) = [load for load in LOADS if load.name == args.row]
    folder = Path(tempfile.mkdtemp(prefix="tidelog-calls-"))
    try:
        with ended_by_signals(), checked_out([args.old, args.new]) as (old, new):
            before, after = calls(old, load, folder), calls(new, load, folder)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{sum(before.values()):.1f} calls a request before, {sum(after.values()):.1f} now")
    for change, name, was, now in differences(before, after):
        print(f"{change:+8.2f}  {was:8.2f} -> {now:8.2f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
