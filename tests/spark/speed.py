"""What a record costs: ``python -m tests.spark.speed [--records N] [--rounds N]``, beside Spark's Kafka connector.

Both sources read the same topics of an Apache Kafka node in one session, in turns, into Spark's ``noop`` sink. Measured are CPU
seconds of Spark's JVM and its Python workers, not of the node; the first turn of each warms up and is left out. CPU seconds stand
for wall time where other work runs beside it; they still grow when caches are shared, so what counts is the ratio within a row.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running
from tests.spark.rows import CONNECTOR, Kind, fill, frame
from tests.spark.session import cpu_seconds, session
from tools.jars import ensure

KINDS = (Kind("speed-100", "none"), Kind("speed-100-lz4", "lz4"), Kind("speed-1024", "none", size=1024))
SOURCES = ("kafka", "tidelog")


def cost(rows: Any) -> float:
    """CPU seconds of reading everything."""
    before = cpu_seconds()
    rows.write.format("noop").mode("overwrite").save()
    return cpu_seconds() - before


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    print("topic           krec/CPU s: connector  tidelog   ratio of medians (ratios of the rounds)")
    with tempfile.TemporaryDirectory() as folder:
        java = JavaSide(Path(folder, "java.log"))
        node = Node("apache", Path(folder, "node"), java, properties={"log.retention.ms": "-1"})
        spark = session(2, jars=ensure(CONNECTOR))
        with running(node):
            for kind in KINDS:
                fill(node.bootstrap, kind, asked.records)
                seconds: dict[str, list[float]] = {source: [] for source in SOURCES}
                for turn in range(asked.rounds + 1):
                    for source in SOURCES:
                        spent = cost(frame(spark, kind, source, node.bootstrap))
                        if turn:
                            seconds[source].append(spent)
                theirs, ours = (asked.records / median(seconds[source]) / 1000 for source in SOURCES)
                rounds = " ".join(f"{a / b:.2f}" for a, b in zip(*seconds.values(), strict=True))
                print(f"{kind.name:15} {theirs:21.0f} {ours:8.0f}   {ours / theirs:.2f} ({rounds})", flush=True)
        spark.stop()
        java.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
