"""A flow as a query in real-time mode: a task for each partition that never ends, and an offset log entry after each
``trigger``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.ids import TopicPartition
from tidelog.pipeline import expectations, transforming
from tidelog.pipeline.decoding import ASIDE, columns_of, decoded, plan
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import Flow, checkpoint_path
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.realtime.options import sink_options, source_options
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.starts import partitions_of
from tidelog.spark.cluster import Cluster


@dataclass(slots=True)
class Written:
    """What a run asks of a query's writer. Spark's sink counts nothing and keeps no batch: ``sinks`` has the names alone."""

    counts: Counts = field(default_factory=Counts)
    sinks: dict[str, Any] = field(default_factory=dict)


class RealTimeQuery:
    def __init__(self, model: PipelineModel, flow: Flow, spark: Any) -> None:
        self._model = model
        self.flow = flow
        self._spark = spark
        self.writer = Written(sinks={sink.name: sink for sink in flow.sinks})
        self.query: Any = None
        self._seen = -1
        self._done: tuple[OffsetRange, ...] = ()
        self._asked_to_rest = -1

    def prepare(self, from_here: frozenset[str] = frozenset()) -> None:
        """Check that topics exist and that there is a core for each of their partitions: a task without one would wait
        indefinitely."""
        if from_here:
            raise PipelineFailure(
                "--from-here is for tables; with engine: jvm the checkpoint alone says where a query continues."
            )
        cluster = Cluster(parse_settings(dict(self._model.kafka)))
        try:
            partitions, _ = partitions_of(cluster, self.flow.sources[0])
        finally:
            cluster.close()
        slots = int(self._spark.sparkContext.defaultParallelism)
        if len(partitions) > slots:
            raise PipelineFailure(
                f"Real-time mode runs a task for each partition all the time: {self.flow.name} has {len(partitions)} partitions, "
                f"and Spark has {slots} cores. Say spark: {{master: 'local[{len(partitions)}]'}}, or give the cluster more."
            )

    def ends(self) -> dict[TopicPartition, int]:
        """Not used: a query in real-time mode has no end."""
        return {}

    def start(self, *, once: bool) -> None:
        """Begin to run; returns at once."""
        if once:
            raise PipelineFailure("--once has no meaning in real-time mode, which does not end: leave it out.")
        model, source = self._model, self.flow.sources[0]
        frame = self._spark.readStream.format("kafka").options(**source_options(model, source)).load()
        good = decoded(frame, plan(source, None)).where("_error is null").drop(*ASIDE)
        frames = transforming.apply({source.name: good}, self.flow.transforms, model, expectations.kept)
        sink = self.flow.sinks[0]
        writer = self._as_records(frames[sink.input]).writeStream.format("kafka").outputMode("update")
        writer = writer.options(**sink_options(model, sink.option("topic"))).queryName(f"{model.name}.{self.flow.name}")
        writer = writer.option("checkpointLocation", checkpoint_path(model, self.flow))
        self.query = writer.trigger(realTime=f"{model.trigger_ms} milliseconds").start()

    def _as_records(self, rows: Any) -> Any:
        """The columns of a record; a source without a transform keeps its key."""
        if "key" not in rows.columns and "_key" in rows.columns:
            rows = rows.withColumnRenamed("_key", "key")
        if "headers" not in rows.columns and "_headers" in rows.columns:
            rows = rows.withColumnRenamed("_headers", "headers")
        if "value" not in rows.columns:
            raise PipelineFailure(
                f"The sink {self.flow.sinks[0].name} writes records, and its rows have no column value: add one in a transform, "
                "like to_json(struct(*)) AS value."
            )
        return rows.select(*(name for name in ("key", "value", "headers", "partition") if name in rows.columns))

    @property
    def done(self) -> tuple[OffsetRange, ...]:
        """The offsets up to the last entry of the offset log."""
        last = self.query.lastProgress if self.query is not None else None
        # The whole list is expensive to move out of the JVM at every call.
        for found in self.query.recentProgress if last is not None and last.batchId > self._seen else ():
            if found.batchId > self._seen:
                self._seen = found.batchId
                said = json.loads(found.json)
                self.writer.counts.records += int(said.get("numInputRows", 0))
                self._done = ranges_of(said)
        return self._done

    def columns(self) -> dict[str, dict[str, str]]:
        return {source.name: columns_of(plan(source, None)) for source in self.flow.sources}

    def resting(self) -> bool:
        """Whether the offset log has a new entry since the first call: what was read before it is not read again."""
        if self._asked_to_rest < 0:
            self._asked_to_rest = self._seen + 1
        return self.done is not None and self._seen >= self._asked_to_rest


def ranges_of(progress: dict[str, Any]) -> tuple[OffsetRange, ...]:
    """From a StreamingQueryProgress of the connector's source. Java's connector has no topic ids."""
    found = []
    for source in progress.get("sources") or ():
        ends = _offsets(source.get("endOffset"))
        starts = _offsets(source.get("startOffset"))
        for (topic, partition), end in sorted(ends.items()):
            found.append(OffsetRange(topic, "", partition, starts.get((topic, partition), end), end))
    return tuple(found)


def _offsets(said: Any) -> dict[tuple[str, int], int]:
    found = json.loads(said) if isinstance(said, str) and said.startswith("{") else said
    if not isinstance(found, dict):
        return {}
    return {(topic, int(number)): int(at) for topic, each in found.items() for number, at in each.items()}
