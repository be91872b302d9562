"""Small files made large, and files that no version needs taken away, in the Delta tables of a pipeline, beside its run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidelog.pipeline.delta_names import delta_name
from tidelog.pipeline.engines import needs_spark
from tidelog.pipeline.model import PipelineModel


@dataclass(frozen=True, slots=True)
class Compacted:
    """What became of a table's files."""

    sink: str
    removed: int
    added: int


def compact(model: PipelineModel, spark: Any, retain_hours: int | None = None) -> Iterator[Compacted]:
    """OPTIMIZE each table; with ``retain_hours`` VACUUM what was replaced longer ago. Rows and identities stay."""
    needs_spark(model, "compact")
    for sink in (*model.sinks, model.dead_letters, model.quarantine):
        if sink is None or sink.kind != "delta":
            continue
        path = sink.option("path")
        if not spark._jvm.io.delta.tables.DeltaTable.isDeltaTable(spark._jsparkSession, path):
            continue
        table = delta_name(spark, path)
        metrics = spark.sql(f"OPTIMIZE {table}").first().metrics
        if retain_hours is not None:
            spark.sql(f"VACUUM {table} RETAIN {retain_hours} HOURS")
        yield Compacted(sink.name, int(metrics.numFilesRemoved), int(metrics.numFilesAdded))
