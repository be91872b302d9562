"""A standalone cluster on this machine: do two workers read twice the partitions at no more CPU per record than one?

``python -m bench.spark.cluster --bootstrap HOST:PORT --topic NAME`` starts a master and two workers (one core each), reads
half of the topic's partitions with one executor and all of them with two, in turns, and prints CPU seconds of master, workers
and executors and records read as JSON."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from bench.spark.processes import cpu_seconds
from tests.interop.nodes import ROOT, answers, free_ports

HOST = "127.0.0.1"


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """The master's URL; everything is ended at the end."""
    home = Path(pyspark.__file__).parent
    master, *ports = free_ports(1 + workers)
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    base = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]
    said = ["--host", HOST, "--webui-port", "0"]
    commands = [[base[0], f"{base[1]}.master.Master", *said, "--port", str(master)]]
    for number, port in enumerate(ports):
        more = ["--port", str(port), "-c", "1", "-m", "1g", "-d", str(folder / f"worker-{number}")]
        commands.append([base[0], f"{base[1]}.worker.Worker", *said, *more, f"spark://{HOST}:{master}"])
    started = []
    try:
        for number, command in enumerate(commands):
            with (folder / f"spark-{number}.log").open("wb") as log:
                started.append(subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT))
        yield f"spark://{HOST}:{master}"
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def session(url: str) -> Any:
    """A session whose driver is this process and whose Python comes from this tree."""
    from pyspark.sql import SparkSession

    import tidelog.spark

    builder = SparkSession.builder.master(url).appName("tidelog-bench")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.executor.memory": "800m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("FATAL")
    tidelog.spark.register(made)
    return made


def read(spark: Any, bootstrap: str, topic: str, partitions: list[int]) -> int:
    """How many records were read, all columns of them."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "assign": json.dumps({topic: partitions}),
        "includeHeaders": "true",
        "endingOffsets": "latest",
    }
    rows = spark.read.format("tidelog").options(**options).load()
    return int(rows.selectExpr("count(*) AS n", "sum(length(value))", "max(timestamp)", "sum(size(headers))").collect()[0].n)


def measured(workers: int, bootstrap: str, topic: str, partitions: list[int], rounds: int) -> list[dict[str, float]]:
    """The rounds of a cluster with so many workers; a first one warms up."""
    found = []
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), workers) as url:
        spark = session(url)
        for turn in range(rounds + 1):
            before, began = cpu_seconds([os.getpid()]), time.monotonic()
            records = read(spark, bootstrap, topic, partitions)
            spent = cpu_seconds([os.getpid()]) - before
            if turn:
                numbers = {"records": records, "cpu_s": round(spent, 2), "wall_s": round(time.monotonic() - began, 2)}
                found.append({**numbers, "cpu_us_per_record": round(spent / records * 1e6, 3)})
        spark.stop()
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    port = int(asked.bootstrap.rpartition(":")[2])
    if not answers(port):
        raise SystemExit(f"nobody answers at {asked.bootstrap}")
    partitions = list(range(asked.partitions))
    print(json.dumps(measured(asked.workers, asked.bootstrap, asked.topic, partitions, asked.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
