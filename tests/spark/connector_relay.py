"""Spark's own Kafka connector between two topics of a node: ``python -m tests.spark.connector_relay BOOTSTRAP FOLDER``.

A process of its own, because the connector's jars have to be there when the JVM starts. It prints how many rows the topic
``out`` has, as a batch read by the connector sees it.
"""

from __future__ import annotations

import sys

from tests.spark.rows import CONNECTOR
from tests.spark.session import session
from tools.jars import ensure


def main(bootstrap: str, folder: str) -> None:
    spark = session(jars=ensure(CONNECTOR))
    try:
        there = {"kafka.bootstrap.servers": bootstrap}
        rows = spark.readStream.format("kafka").options(**there, subscribe="in", startingOffsets="earliest").load()
        writer = rows.select("key", "value").writeStream.format("kafka").options(**there, topic="out")
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        print("rows", spark.read.format("kafka").options(**there, subscribe="out").load().count())
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
