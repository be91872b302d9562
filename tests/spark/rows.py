"""Are our rows the JVM connector's? ``python -m tests.spark.rows [--records N] [--write docs/spark-rows.md] [KIND...]``

On a real Apache Kafka, a topic of each kind is filled and read by ``format("kafka")`` and by ``format("tidelog")`` in one
session of Spark. Compared are the number of rows and, for each column, the sum of a 64-bit hash of (partition, offset,
column): a row that is missing, double, moved or different in one bit changes a sum. Exit status 0 when all are equal.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, running
from tests.spark.session import cpu_seconds, session
from tools.jars import ensure

CONNECTOR = Path(__file__).parent / "connector"
COLUMNS = ("topic", "key", "value", "timestamp", "timestampType", "headers")
PARTITIONS = 4
TRANSACTIONS = 300
COMPACTION_LIMIT_S = 300
LEAST_TO_COMPACT = 200_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of topic: how it is written, and with which settings it is read."""

    name: str
    codec: str
    size: int = 100
    transactional: bool = False
    compacted: bool = False
    config: tuple[tuple[str, str], ...] = ()
    isolation: str = "read_committed"


KINDS = (
    *(Kind(codec, codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    Kind("1 KiB", "none", size=1024),
    Kind("broker's timestamps", "lz4", config=(("message.timestamp.type", "LogAppendTime"),)),
    Kind("transactions, a third aborted", "zstd", transactional=True),
    Kind("the same, read_uncommitted", "zstd", transactional=True, isolation="read_uncommitted"),
    Kind(
        "compacted",
        "lz4",
        compacted=True,
        config=(
            ("cleanup.policy", "compact"),
            ("segment.bytes", "1048576"),
            ("min.cleanable.dirty.ratio", "0.01"),
        ),
    ),
)


def topic_of(kind: Kind) -> str:
    """Kinds that only read differently share a topic."""
    return "txn" if kind.transactional else "".join(c if c.isalnum() else "-" for c in kind.name)


def fill(bootstrap: str, kind: Kind, records: int) -> None:
    """Write the records: keys, values and headers of all sorts, nulls and empty ones among them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic_of(kind), PARTITIONS, 1, config=dict(kind.config))
    admin.create_topics([new])[topic_of(kind)].result()
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "compression.type": kind.codec,
        "linger.ms": 20,
        "batch.size": 200_000,
        "queue.buffering.max.messages": 500_000,
        "log_level": 2,
    }
    if kind.transactional:
        settings["transactional.id"] = "rows"
    producer = Producer(settings)
    text = b"".join(b"%x" % (i * 2654435761 % 2**32) for i in range(20_000))
    each = max(1, records // TRANSACTIONS)
    if kind.transactional:
        producer.init_transactions()
    for i in range(records):
        if kind.transactional and i % each == 0:
            producer.begin_transaction()
        begin = i * 37 % (len(text) - 2048)
        value = None if i % 97 == 0 else b"" if i % 89 == 0 else text[begin : begin + kind.size]
        key = b"%d" % (i % (records // 10 + 1)) if kind.compacted else None if i % 7 == 0 else b"key %d" % i
        headers = [("number", b"%d" % i), ("größe", None), ("", b"")] if i % 5 == 0 else None
        while True:
            try:
                producer.produce(topic_of(kind), value, key, i % PARTITIONS, timestamp=1_700_000_000_000 + i, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
        if kind.transactional and i % each == each - 1:
            producer.flush()  # what is aborted must be in the log first
            (producer.abort_transaction if i // each % 3 == 2 else producer.commit_transaction)()
        elif i % 1000 == 0:
            producer.poll(0)
    if kind.transactional and records % each:
        producer.commit_transaction()
    producer.flush()


def frame(spark: Any, kind: Kind, source: str, bootstrap: str) -> Any:
    """The topic as a DataFrame."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic_of(kind),
        "includeHeaders": "true",
        "kafka.isolation.level": kind.isolation,
    }
    return spark.read.format(source).options(**options).load()


def sums(rows: Any) -> tuple[int, ...]:
    """Number of rows and a sum of hashes for each column."""
    from pyspark.sql import functions as f

    hashes = [f.sum(f.xxhash64("partition", "offset", column).cast("decimal(38,0)")) for column in COLUMNS]
    counted = rows.agg(f.count("*"), f.coalesce(f.sum("offset"), f.lit(0)), *hashes).collect()[0]
    return tuple(int(number or 0) for number in counted)


def wait_until_compacted(spark: Any, kind: Kind, bootstrap: str, records: int) -> None:
    """Until the cleaner has left gaps and has been quiet for a moment."""
    deadline, before = time.monotonic() + COMPACTION_LIMIT_S, -1
    while time.monotonic() < deadline:
        now = frame(spark, kind, "tidelog", bootstrap).select("offset").count()
        if now == before and now < records:
            return
        before = now
        time.sleep(5)
    raise SystemExit(f"the topic was not compacted within {COMPACTION_LIMIT_S} s: {before} of {records} records are left")


def compare(spark: Any, kind: Kind, bootstrap: str) -> tuple[bool, str]:
    """Whether both sources have the same rows, and a line of the table."""
    seconds = []
    found = []
    for source in ("kafka", "tidelog"):
        before = cpu_seconds()
        found.append(sums(frame(spark, kind, source, bootstrap)))
        seconds.append(cpu_seconds() - before)
    theirs, ours = found
    verdict = "equal" if ours == theirs else f"DIFFERENT: theirs {theirs}, ours {ours}"
    digest = sum(ours[2:]) % 2**64
    return ours == theirs, f"| {kind.name} | {ours[0]:,} | {digest:016x} | {verdict} | {seconds[0]:.1f} | {seconds[1]:.1f} |"


HEAD = """# Rows, compared with Spark's Kafka connector

`make spark-rows` on {date}: {records:,} records of each kind, written to an Apache Kafka 4.3.1 by librdkafka,
read by `format("kafka")` (spark-sql-kafka 4.2.0) and by `format("tidelog")` in one session of PySpark {spark}.
Records have keys, values and headers, null and empty ones among them. Rows are equal when their number, and for each
column the sum of xxhash64(partition, offset, column), are equal; the digest is made of those sums. CPU seconds are those
of Spark's JVM and its Python workers for the whole query, hashing included, taken once on a machine that did other work.

| topic | rows | digest | rows are | CPU s, connector | CPU s, tidelog |
|---|---|---|---|---|---|
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(kind.name for kind in KINDS))
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    named = {kind.name: kind for kind in KINDS}
    kinds = [named[name] for name in asked.kinds] or KINDS
    import pyspark

    text = HEAD.format(date=datetime.date.today(), records=asked.records, spark=pyspark.__version__)  # noqa: DTZ011
    print(text, end="", flush=True)
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        java = JavaSide(Path(folder, "java.log"))
        properties = {"log.retention.ms": "-1", "log.cleaner.backoff.ms": "1000"}
        node = Node("apache", Path(folder, "node"), java, properties=properties)
        spark = session(2, jars=ensure(CONNECTOR))
        filled = set()
        with running(node):
            for kind in kinds:
                # Only closed segments are compacted, and they have a megabyte.
                records = max(asked.records, LEAST_TO_COMPACT) if kind.compacted else asked.records
                if topic_of(kind) not in filled:
                    fill(node.bootstrap, kind, records)
                    filled.add(topic_of(kind))
                if kind.compacted:
                    wait_until_compacted(spark, kind, node.bootstrap, records)
                same, line = compare(spark, kind, node.bootstrap)
                equal = equal and same
                text += line + "\n"
                print(line, flush=True)
        spark.stop()
        java.close()
    if asked.write is not None and equal:
        asked.write.write_text(text)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
