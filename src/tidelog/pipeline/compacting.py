"""Compact the tables of a pipeline and delete files that no version needs, while the pipeline runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tidelog.pipeline.delta_names import delta_name
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.lake import compaction
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.model import Engine, PipelineModel, SinkSpec

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Compacted:
    """What changed in a table's files. ``expired``: how many replaced files were deleted, where that is known."""

    sink: str
    removed: int
    added: int
    expired: int | None = None


def compact(model: PipelineModel, session: Callable[[], Any], retain_hours: int | None = None) -> Iterator[Compacted]:
    """Join each table's small files; with ``retain_hours`` delete files that were replaced longer ago. Rows and identities
    stay.

    ``session`` is called for Spark only if there is a Delta table. PipelineFailure if the pipeline has no table that can be
    compacted.
    """
    sinks = [sink for sink in (*model.sinks, model.dead_letters, model.quarantine) if sink is not None]
    plain = [sink for sink in sinks if sink.kind == "parquet"]
    delta = [sink for sink in sinks if sink.kind == "delta" and model.engine is Engine.SPARK]
    if not plain and not delta:
        raise PipelineFailure(
            f"{model.name} has no table to compact here: that is for sinks of type parquet, and of type delta with engine: "
            "spark. Other tables have tools of their own."
        )
    for sink in plain:
        yield from _plain(sink, retain_hours)
    if delta:
        spark = session()
        for sink in delta:
            yield from _delta(sink, spark, retain_hours)


def _plain(sink: SinkSpec, retain_hours: int | None) -> Iterator[Compacted]:
    table = ManifestTable(sink.option("path"))
    if not table.exists():
        return
    done = compaction.compact(table)
    expired = None
    if retain_hours is not None:
        expired = compaction.expire(table, time.time_ns() // 1_000_000 - retain_hours * _HOUR_MS)
    yield Compacted(sink.name, done.removed, done.added, expired)


def _delta(sink: SinkSpec, spark: Any, retain_hours: int | None) -> Iterator[Compacted]:
    path = sink.option("path")
    if not spark._jvm.io.delta.tables.DeltaTable.isDeltaTable(spark._jsparkSession, path):
        return
    table = delta_name(spark, path)
    metrics = spark.sql(f"OPTIMIZE {table}").first().metrics
    if retain_hours is not None:
        spark.sql(f"VACUUM {table} RETAIN {retain_hours} HOURS")
    yield Compacted(sink.name, int(metrics.numFilesRemoved), int(metrics.numFilesAdded))
