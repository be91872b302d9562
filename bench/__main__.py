"""``python -m bench``: tidelog beside a real Apache Kafka that is cold, in one run, by the same clients (make bench-cold).

For start, memory, failover and Kafka's own clients. What it says of CPU, rates and latencies is against a JVM that has just
started; ``python -m bench.warm`` is what measures those. Each round gives every side a fresh node and the same rows; the order of
the sides turns from round to round. The table has medians and ranges over the rounds; all single values go to a JSON file.
``--sides apache,apache`` shows what the noise is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.cluster_rows import CLUSTER_FULL, CLUSTER_QUICK, CLUSTER_SMOKE, ClusterRow, cluster_groups, cluster_round
from bench.java_load import LoadFailed, produce
from bench.report import machine, table
from bench.rows import FULL, QUICK, SHAPES, SMOKE, Row, Scale, many_partitions_rows, on_an_empty_node, uncovered, under_load
from bench.sides import Side, fresh
from tests.interop.java import JavaFailed, JavaSide
from tests.interop.nodes import ROOT, NodeFailed, environment

RESULTS = ROOT / "bench" / "results"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured [5]")
    parser.add_argument("--groups", default="node,cluster", help="one node, three nodes, or both [node,cluster]")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches; a fetch needs its produce")
    parser.add_argument("--sides", default="tidelog,apache", help="who is measured, from: tidelog, apache [tidelog,apache]")
    parser.add_argument("--quick", action="store_true", help="less of everything, as many rounds")
    parser.add_argument("--smoke", action="store_true", help="one short round: does it run")
    parser.add_argument("--data", type=Path, help="where the nodes keep their data [a temporary folder]")
    return parser.parse_args()


def warm_up(side: Side, scale: Scale) -> None:
    """A JVM is slow at first; that is not what is asked here. (The rows about starting come before.)"""
    side.node.create("warm-up", 2)
    for _ in range(2):
        produce(side.node.bootstrap, "warm-up", scale.megabytes * 200, 1024, 16384, "all", "none")


def measured(side: Side, rows: list[Row], scale: Scale) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row's numbers on a running side. A row that fails says so and does not end the run."""
    for row in rows:
        try:
            numbers: dict[str, Any] = row.work(side, scale)
        except (LoadFailed, NodeFailed, JavaFailed, AssertionError) as failed:
            numbers = {"failed": str(failed)}
        shown = numbers.get(row.main)
        print(
            f"  {side.name:12} {row.name}: {numbers['failed'] if shown is None else f'{shown:,.4g} {row.unit}'}", file=sys.stderr
        )
        yield row.name, numbers


def one_round(
    names: list[tuple[str, str]], groups: list[list[Row]], scale: Scale, data: Path, java: JavaSide
) -> dict[str, dict[str, Any]]:
    """Every side in turn: for each group of rows a fresh node."""
    found: dict[str, dict[str, Any]] = {name: {} for name, _ in names}
    for number, rows in enumerate(groups):
        if not rows:
            continue
        for name, kind in names:
            with fresh(name, kind, data, java, {"log.cleaner.backoff.ms": "1000"} if number == 1 else None) as side:
                side.node.start()
                if number == 1:
                    warm_up(side, scale)
                found[name].update(measured(side, rows, scale))
                side.node.kill()
    return found


def allocations() -> dict[str, dict[str, float]]:
    """What ``bench.allocations`` prints; nothing where there is no C compiler."""
    command = [sys.executable, "-m", "bench.allocations"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return {}
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def about(args: argparse.Namespace, group: str, sides: list[str], rows: Sequence[Row | ClusterRow]) -> dict[str, Any]:
    """What stands above the rounds of a result."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": commit,
        "machine": machine(),
        "group": group,
        "scale": "smoke" if args.smoke else "quick" if args.quick else "full",
        "sides": sides,
        "shapes": [str(shape) for shape in SHAPES] if group == "node" else [],
        "rows": [
            {"name": row.name, "kind": row.kind, "main": row.main, "unit": row.unit, "higher": row.higher_is_better}
            for row in rows
        ],
        "rounds": [],
    }


def measure(args: argparse.Namespace, group: str, data: Path, java: JavaSide) -> dict[str, Any]:
    """All rounds of one group; the file with all values is there after each of them."""
    kinds = args.sides.split(",")
    sides = [(kind if kinds.count(kind) == 1 else f"{kind} {number + 1}", kind) for number, kind in enumerate(kinds)]
    if group == "node":
        scale = SMOKE if args.smoke else QUICK if args.quick else FULL
        groups = [
            [row for row in rows if re.search(args.rows, row.name)]
            for rows in (on_an_empty_node(), under_load(), list(many_partitions_rows()))
        ]
        result = about(args, group, [name for name, _ in sides], [row for rows in groups for row in rows])
    else:
        of_cluster = CLUSTER_SMOKE if args.smoke else CLUSTER_QUICK if args.quick else CLUSTER_FULL
        cluster_rows = [[row for row in rows if re.search(args.rows, row.name)] for rows in cluster_groups()]
        result = about(args, group, [name for name, _ in sides], [row for rows in cluster_rows for row in rows])
    RESULTS.mkdir(exist_ok=True)
    called = "-".join(["cluster"] * (group == "cluster") + kinds + ["smoke"] * args.smoke)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M', time.gmtime())}-{called}.json"
    for number in range(1 if args.smoke else args.rounds):
        turn = number % len(sides)
        print(f"{group}: round {number + 1} of {args.rounds}", file=sys.stderr)
        turned = sides[turn:] + sides[:turn]
        if group == "node":
            result["rounds"].append(one_round(turned, groups, scale, data, java))
        else:
            result["rounds"].append(cluster_round(turned, cluster_rows, of_cluster, data))
        path.write_text(json.dumps(result, indent=1) + "\n")
    if group == "node" and "tidelog" in kinds:
        result["allocations"] = allocations()
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"all values: {path.relative_to(ROOT)}", file=sys.stderr)
    return result


def main() -> int:
    args = arguments()
    assert not uncovered(), f"the shapes miss {uncovered()}"
    data = args.data or Path(tempfile.mkdtemp(prefix="tidelog-bench-"))
    java = JavaSide(data / "java.log")
    failed = False
    try:
        for group in args.groups.split(","):
            result = measure(args, group, data, java)
            print(table(result))
            failed |= any("failed" in numbers for one in result["rounds"] for rows in one.values() for numbers in rows.values())
    finally:
        java.close()
        if args.data is None:
            shutil.rmtree(data, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
