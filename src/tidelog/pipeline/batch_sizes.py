"""How many records a batch has where the pipeline does not say: as many as fit into Spark's memory.

A batch that is cached, or merged into a table, is in that memory or, beyond it, on disks. One that is appended needs little of
it, but is done again whole after a crash. With state (windows, dedupe) there is no limit: where batches end decides which
rows are late.
"""

from __future__ import annotations

from typing import Any

from tidelog.pipeline.flows import Flow
from tidelog.pipeline.model import Engine, PipelineModel, Source

RECORD_BYTES = 1024
"""What a record is taken to need."""
LEAST = 100_000
"""A batch costs Spark a second or so whatever is in it: fewer records are not worth it."""


def records_per_batch(model: PipelineModel, flow: Flow, source: Source, spark: Any) -> int | None:
    """The limit for a batch of a source; None for none."""
    if source.max_records is not None:
        return source.max_records
    if flow.remembers or model.engine is not Engine.SPARK:
        return None
    return fitting(memory(spark))


def fitting(memory_bytes: int) -> int:
    """The records for so much memory."""
    return max(LEAST, memory_bytes // RECORD_BYTES)


def memory(spark: Any) -> int:
    """What Spark's driver and executors have for the data of queries, in bytes: by default 0.6 of each heap beyond 300 MB."""
    known = spark._jsc.sc().getExecutorMemoryStatus()
    found = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(known)
    return sum(int(of_one._1()) for of_one in found.values())
