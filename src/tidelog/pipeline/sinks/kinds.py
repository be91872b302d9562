"""The kinds of sinks: the options of each, and its module.

A sink's module has ``make(model: SinkSpec, pipeline: PipelineModel) -> Sink`` and is imported when a pipeline names its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

from tidelog.pipeline.sinks.base import Sink

if TYPE_CHECKING:
    from tidelog.pipeline.model import PipelineModel, SinkSpec


@dataclass(frozen=True, slots=True)
class SinkKind:
    """One row of the table. ``options`` beside those that every sink has; ``required``: those without a default."""

    module: str
    options: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    upserts: bool = False
    jars: tuple[str, ...] = ()
    fills_in: bool = False
    aside: bool = True


KINDS: dict[str, SinkKind] = {
    "console": SinkKind("tidelog.pipeline.sinks.console", ("rows",)),
    "delta": SinkKind("tidelog.pipeline.sinks.delta", ("path",), ("path",), upserts=True, jars=("delta",), fills_in=True),
    "hbase": SinkKind(
        "tidelog.pipeline.sinks.hbase",
        ("url", "table", "family", "columns", "encoding", "user", "password"),
        ("url", "table"),
        upserts=True,
        fills_in=True,
        aside=False,
    ),
    "iceberg": SinkKind("tidelog.pipeline.sinks.iceberg", ("table",), ("table",), upserts=True, jars=("iceberg",)),
    "jdbc": SinkKind(
        "tidelog.pipeline.sinks.jdbc", ("url", "driver", "table", "user", "password"), ("url", "driver", "table"), upserts=True
    ),
    "parquet": SinkKind("tidelog.pipeline.sinks.parquet", ("path",), ("path",)),
    "topic": SinkKind("tidelog.pipeline.sinks.topic", ("topic", "stagingTopic", "inlineBytes"), ("topic",), aside=False),
}
"""``jars``: names of sets of jars that a session needs for it (``spark.jars``). ``fills_in``: a backfill can write to it, see
``base.FillsIn``. ``aside``: it can take dead letters and quarantine, whose columns the user does not choose."""


def make_sink(spec: SinkSpec, pipeline: PipelineModel) -> Sink:
    """The sink of a model."""
    return cast(Sink, import_module(KINDS[spec.kind].module).make(spec, pipeline))
