"""``python -m bench.pipelines``: YAML pipelines beside the same jobs by hand in plain Structured Streaming.

One tidelog node in a process of its own, one session of Spark for all sides, which run in turns; the first turn is thrown away.
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

from bench.pipelines.jobs import Job
from bench.pipelines.measuring import Row, World, measure
from bench.pipelines.report import table, write_page
from bench.pipelines.topics import fill
from bench.report import machine
from tests.interop.java import JavaSide
from tests.interop.nodes import ROOT, Node, running
from tests.spark.rows import CONNECTOR
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.session import session_for
from tidelog.pipeline.yaml_text import parse
from tools.jars import ensure

RESULTS = ROOT / "bench" / "results"
AVRO_JAR = "org.apache.spark:spark-avro_2.13:4.1.1"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="in each topic [1000000]")
    parser.add_argument("--batch", type=int, default=200_000, help="records of each batch in the rows with several [200000]")
    parser.add_argument("--small", type=int, default=1000, help="records of each batch at a trigger of 1 s [1000]")
    parser.add_argument("--batches", type=int, default=30, help="how many of those [30]")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured [3]")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--memory", default="4g", help="the heap of Spark's JVM [4g]")
    parser.add_argument("--smoke", action="store_true", help="one short round: does it run")
    parser.add_argument("--write-page", action="store_true", help="put the table into docs/benchmarks.md")
    return parser.parse_args()


def rows_of(args: argparse.Namespace) -> list[Row]:
    """All rows; those of one form share a topic."""
    found = []
    for form in ("json", "avro"):
        for mode in ("append", "upsert"):
            found.append(Row(f"{form} {mode}", Job(form, mode, form), args.records))
    found.append(Row("json append, quarantine", Job("json", "append", "json", keeps_broken=True), args.records))
    found.append(Row(f"json append, batches of {args.batch:,}", Job("json", "append", "json", args.batch), args.records))
    trickle = Job("json", "append", "json", args.small, trigger_s=1)
    found.append(Row(f"json append, {args.small:,} records each second", trickle, args.records, args.batches))
    return [row for row in found if re.search(args.rows, row.name)]


def session(bootstrap: str, memory: str) -> Any:
    """As ``tidelog pipeline run`` makes one, with Spark's connector and its Avro."""
    settings = {
        "master": "local[2]",
        "driver.memory": memory,
        "driver.host": "127.0.0.1",
        "driver.bindAddress": "127.0.0.1",
        "jars": ",".join(str(jar) for jar in sorted(ensure(CONNECTOR).glob("*.jar"))),
        "jars.packages": AVRO_JAR,
    }
    text = f"pipeline: bench\nkafka: {{bootstrap.servers: '{bootstrap}'}}\nsources: {{s: {{topics: [t]}}}}\n"
    text += "sinks: {t: {type: delta, from: s, path: p}}\nspark:\n" + "".join(f"  {k}: '{v}'\n" for k, v in settings.items())
    return session_for(read_model(parse(text, "bench", {})))


def main() -> int:
    args = arguments()
    if args.smoke:
        args.records, args.batch, args.small, args.batches, args.rounds = 20_000, 10_000, 100, 3, 1
    import pyspark

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    result: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": commit.stdout.strip(),
        "machine": machine(),
        "pyspark": pyspark.__version__,
        "records": args.records,
        "rounds": args.rounds,
        "rows": [],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M', time.gmtime())}-pipelines{'-smoke' if args.smoke else ''}.json"
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-") as folder:
        java = JavaSide(Path(folder, "java.log"))
        node = Node("tidelog", Path(folder, "node"), java, properties={"log.retention.ms": "-1"})
        with running(node):
            assert node.process is not None
            spark = session(node.bootstrap, args.memory)
            world = World(spark, node.bootstrap, Path(folder), os.getpid(), (node.process.pid,))
            filled: set[str] = set()
            for row in rows_of(args):
                if row.job.topic not in filled:
                    fill(node.bootstrap, row.job.topic, row.job.form, args.records, max(1000, args.records // 4))
                    filled.add(row.job.topic)
                sides: dict[str, list[Any]] = {}
                for _, side, numbers in measure(world, row, args.rounds):
                    sides.setdefault(side, []).append(numbers)
                    print(f"  {row.name}, {side}: {json.dumps(numbers)}", file=sys.stderr, flush=True)
                result["rows"].append({"name": row.name, "small": bool(row.small_batches), "sides": sides})
                path.write_text(json.dumps(result, indent=1) + "\n")
            spark.stop()
        java.close()
    print(table(result))
    print(f"all values: {path.relative_to(ROOT)}", file=sys.stderr)
    if args.write_page:
        write_page(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
