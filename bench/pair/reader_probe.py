"""Spark's half without Spark: the data source's reader reads a topic from its beginning to its end, in this process.

Runs in the environment of a revision and imports nothing of the harness: ``python reader_probe.py BOOTSTRAP TOPIC PASSES``.
Only PySpark's data source interface is used. Prints a line of JSON: rows, and the user and system seconds of the reading alone.
With ``--count`` instead of PASSES the process runs under callgrind: the reading is counted, and the count is dumped.
"""

import json
import os
import resource
import subprocess
import sys

from pyspark.sql import types

from tidelog.spark.source import TidelogDataSource

COUNTED_PASSES = 4


def read(bootstrap: str, topic: str) -> int:
    """One pass over the topic; its rows."""
    source = TidelogDataSource(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest", "endingOffsets": "latest"}
    )
    names = {
        "key": types.BinaryType(),
        "value": types.BinaryType(),
        "offset": types.LongType(),
        "timestamp": types.TimestampType(),
    }
    reader = source.reader(types.StructType([types.StructField(name, kind) for name, kind in names.items()]))
    return sum(batch.num_rows for partition in reader.partitions() for batch in reader.read(partition))


def callgrind(*words: str) -> None:
    """Tell callgrind, which runs this process, to do something."""
    subprocess.run(["vgdb", f"--pid={os.getpid()}", "--wait=60", *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """See the module."""
    bootstrap, topic, count = sys.argv[1], sys.argv[2], "--count" in sys.argv
    passes = COUNTED_PASSES if count else int(sys.argv[3])
    once = read(bootstrap, topic)  # Python adapts its code, and connections are made
    if count:
        callgrind("instrumentation", "on")
        callgrind("zero")
    before = resource.getrusage(resource.RUSAGE_SELF)  # not os.times: a tick of 10 ms is two percent of a slice
    rows = sum(read(bootstrap, topic) for _ in range(passes))
    after = resource.getrusage(resource.RUSAGE_SELF)
    if count:
        callgrind("dump")
    assert rows and rows == once * passes, f"{rows} rows in {passes} passes, {once} in the first"
    print(json.dumps({"rows": rows, "user_s": after.ru_utime - before.ru_utime, "system_s": after.ru_stime - before.ru_stime}))


if __name__ == "__main__":
    main()
