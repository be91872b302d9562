"""``python -m bench.console``: the console on three nodes of tidelog or of Apache Kafka with many topics and groups.

Prints a line of JSON with what was measured; with ``--write`` it goes into the page's file of results too, and the page is
written from that. A run measures what is named in ``--parts``; what an earlier run found of the others stays.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.console import api_calls, filling, pages, report, searching
from bench.console.clusters import HEAP, KINDS, TIDELOG, cluster
from bench.console.filling import Size
from bench.report import machine

FULL = Size()
PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks-console.md"
PARTS = ("api", "pages", "search")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default=TIDELOG)
    parser.add_argument("--topics", type=int, default=FULL.topics)
    parser.add_argument("--partitions", type=int, default=FULL.partitions)
    parser.add_argument("--groups", type=int, default=FULL.groups)
    parser.add_argument("--heap", default=HEAP, help="of each Apache Kafka node")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", default="", help="calls of the API whose name has this in it")
    parser.add_argument("--rounds", type=int, default=5, help="of visits to each page; the first finds a fresh console")
    parser.add_argument("--seconds", type=float, default=60, help="for which pages are kept open")
    parser.add_argument(
        "--hold", type=Path, metavar="FILE", help="measure nothing: say in FILE where the cluster is, until ended"
    )
    parser.add_argument("--on", type=Path, metavar="FILE", help="measure on the cluster that another one holds")
    parser.add_argument("--note", default="", help="what a reader has to know of this run, such as what ran beside it")
    parser.add_argument("--write", action="store_true", help=f"into docs/{PAGE.name}, and its samples beside it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidelog-console-") as folder:
        if options.on:
            finish(options, measured(options, json.loads(options.on.read_text()), Path(folder)))
        else:
            on_own_cluster(options, Path(folder))


def on_own_cluster(options: argparse.Namespace, folder: Path) -> None:
    """Makes the cluster, and measures on it or holds it."""
    size = Size(options.topics, options.partitions, options.groups)
    with cluster(options.kind, folder, options.heap) as nodes:
        print(f"{options.kind}: {size}", file=sys.stderr, flush=True)
        took = asyncio.run(filling.fill(nodes.bootstrap, size))
        there = {
            "kind": options.kind,
            "heap": options.heap,
            "bootstrap": nodes.bootstrap,
            "pids": nodes.pids(),
            "size": [size.topics, size.partitions, size.groups],
            "filled_s": took,
            "counted": asyncio.run(filling.counted(nodes.bootstrap)),
        }
        if not options.hold:
            finish(options, measured(options, json.loads(json.dumps(there)), folder))
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        beside = options.hold.with_suffix(".new")
        beside.write_text(json.dumps(there))
        beside.rename(options.hold)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


def measured(options: argparse.Namespace, there: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What the parts found, with where and when."""
    size = Size(*there["size"])
    pids = {int(node_id): pid for node_id, pid in there["pids"].items()}
    found: dict[str, Any] = {
        "kind": there["kind"],
        "heap": there["heap"],
        "size": there["size"],
        "counted": there["counted"],
        "filled_s": there["filled_s"],
    }
    about = {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": commit(),
        "machine": machine(),
        "note": options.note,
        "load": os.getloadavg()[0],
    }
    if "api" in options.parts:
        calls = api_calls.measure(there["bootstrap"], folder, pids, size, options.only)
        found["api"] = {**about, "calls": calls}
    if "pages" in options.parts:
        found["pages"] = {
            **about,
            "seconds": options.seconds,
            **pages.measure(there["bootstrap"], folder, pids, size, options.rounds, options.seconds),
        }
    if "search" in options.parts:
        found["search"] = {**about, **searching.measure(there["bootstrap"], folder, pids, options.rounds, options.seconds / 4)}
    return found


def commit() -> str:
    """Of the working tree; with a mark where it has changes."""
    run = ("git", "-C", str(PAGE.parent), "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*")
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def finish(options: argparse.Namespace, found: dict[str, Any]) -> None:
    """Prints it; writes the page."""
    print(json.dumps(found), flush=True)
    if options.write:
        file = PAGE.with_suffix(".json")
        results = json.loads(file.read_text()) if file.exists() else {}
        results[found["kind"]] = {**results.get(found["kind"], {}), **found}
        file.write_text(json.dumps(results, sort_keys=True) + "\n")
        PAGE.write_text(report.page(results))


if __name__ == "__main__":
    main()
