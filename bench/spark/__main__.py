"""``python -m bench.spark``: Spark's half beside Spark's own Kafka connector, on one Apache Kafka node.

Rows of reading and landing are measured in turns in one session; latencies and the cluster in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.report import machine
from bench.spark.latency import MODES
from bench.spark.processes import python_with
from bench.spark.report import table, write_page
from bench.spark.rows import KINDS, ROWS, World, measure
from tests.interop.java import JavaSide
from tests.interop.nodes import ROOT, Node, running
from tests.spark.rows import CONNECTOR, PARTITIONS, topic_of
from tests.spark.session import session
from tools.jars import ensure

RESULTS = ROOT / "bench" / "results"
REAL_TIME = "4.3.0"
CLUSTER = {"one worker, half of the partitions": (1, PARTITIONS // 2), "two workers, all partitions": (2, PARTITIONS)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000, help="in each topic [4000000]")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured [5]")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only what matches; also latency and cluster")
    parser.add_argument("--smoke", action="store_true", help="one short round: does it run")
    parser.add_argument("--write-page", action="store_true", help="put the table into docs/benchmarks.md")
    return parser.parse_args()


def in_a_process(python: str, module: str, *words: str) -> Any:
    """What it prints as JSON in its last line. None when it fails, and says why."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run([python, "-m", module, *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{module} {' '.join(words)}:\n{done.stderr[-2000:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def latencies(bootstrap: str, jars: Path, rounds: int, *, smoke: bool) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for _ in range(rounds):
        for mode in MODES:
            python = str(python_with(REAL_TIME)) if mode == "real-time" else sys.executable
            more = ("--seconds", "5", "--warm-up", "5") if smoke else ()
            numbers = in_a_process(python, "bench.spark.latency", mode, "--bootstrap", bootstrap, "--jars", str(jars), *more)
            if numbers is not None:
                found.setdefault(mode, []).append(numbers)
                print(f"  {mode}: p50 {numbers['p50_ms']} ms, p99 {numbers['p99_ms']} ms", file=sys.stderr)
    return found


def clusters(bootstrap: str, topic: str, rounds: int) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, (workers, partitions) in CLUSTER.items():
        words = ("--bootstrap", bootstrap, "--topic", topic, "--workers", str(workers), "--partitions", str(partitions))
        numbers = in_a_process(sys.executable, "bench.spark.cluster", *words, "--rounds", str(rounds))
        if numbers is not None:
            found[name] = numbers
            print(f"  {name}: {[turn['cpu_us_per_record'] for turn in numbers]} CPU us a record", file=sys.stderr)
    return found


def compared(world: World, rows: tuple[Any, ...], rounds: int) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row, _, side, numbers in measure(world, rows, rounds):
        line = found.setdefault(row.name, {"name": row.name, "goal": row.goal, "sides": {name: [] for name, _ in row.sides}})
        line["sides"][side].append(numbers)
        print(f"  {row.name}, {side}: {numbers['krec_per_cpu_s']} krec per CPU s", file=sys.stderr)
    return list(found.values())


def main() -> int:
    args = arguments()
    if args.smoke:
        args.records, args.rounds = 50_000, 1
    import pyspark

    jars = ensure(CONNECTOR)
    rows = tuple(row for row in ROWS if re.search(args.rows, row.name))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": commit.stdout.strip(),
        "machine": machine(),
        "pyspark": pyspark.__version__,
        "records": args.records,
        "rounds": args.rounds,
        "rows": [],
        "latency": {},
        "cluster": {},
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M', time.gmtime())}-spark{'-smoke' if args.smoke else ''}.json"
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-") as folder:
        java = JavaSide(Path(folder, "java.log"))
        node = Node("apache", Path(folder, "node"), java, properties={"log.retention.ms": "-1"})
        with running(node):
            assert node.process is not None
            spark = session(2, jars=jars)
            world = World(spark, node.bootstrap, Path(folder), args.records, os.getpid(), (node.process.pid,))
            result["rows"] = compared(world, rows, args.rounds)
            path.write_text(json.dumps(result, indent=1) + "\n")
            if re.search(args.rows, "cluster"):
                world.fill(KINDS[0])
            spark.stop()
            if re.search(args.rows, "latency"):
                result["latency"] = latencies(node.bootstrap, jars, args.rounds, smoke=args.smoke)
            if re.search(args.rows, "cluster"):
                result["cluster"] = clusters(node.bootstrap, topic_of(KINDS[0]), args.rounds)
        java.close()
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))
    print(f"all values: {path.relative_to(ROOT)}", file=sys.stderr)
    if args.write_page:
        write_page(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
