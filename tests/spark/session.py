"""One small Spark session for tests, and what it costs in CPU seconds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import tidelog.spark


def session(threads: int = 1, *, jars: Path | None = None, **settings: str) -> Any:
    """A local session that knows ``format("tidelog")``; with ``jars``, whatever is in them too."""
    builder = SparkSession.builder.master(f"local[{threads}]").appName("tidelog")
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    if jars is not None:
        defaults["spark.jars"] = ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    for name, value in (defaults | {name.replace("_", "."): text for name, text in settings.items()}).items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("FATAL")
    tidelog.spark.register(made)
    return made


def cpu_seconds() -> float:
    """CPU time of this process and of all below it, those that have ended included: Spark's JVM and its Python workers."""
    parents: dict[int, list[tuple[int, float]]] = {}
    tick = os.sysconf("SC_CLK_TCK")
    own = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            spent = sum(map(int, fields[11:15])) / tick
            parents.setdefault(int(fields[1]), []).append((int(entry.name), spent))
            if int(entry.name) == os.getpid():
                own = spent
    total, below = own, [os.getpid()]
    while below:
        for child, spent in parents.get(below.pop(), ()):
            total += spent
            below.append(child)
    return total
