"""A flow as a running Spark query: it recovers, continues where it ended, and writes each batch under its identity."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from tidelog.client.settings import parse_settings
from tidelog.model.ids import LATEST_TIMESTAMP, TopicPartition
from tidelog.pipeline.batch_sizes import records_per_batch
from tidelog.pipeline.batches import BatchWriter
from tidelog.pipeline.checkpoint import Checkpoint, HadoopFiles, Start, ranges_between
from tidelog.pipeline.decoding import columns_of
from tidelog.pipeline.flows import Flow, checkpoint_path
from tidelog.pipeline.model import Engine, Mode, PipelineModel, Source
from tidelog.pipeline.plain_reading import Span
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.recovery import Resume, Seen, decide
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, Sink
from tidelog.pipeline.starts import continued, first_offsets, partitions_of, range_options, starting_offsets
from tidelog.spark.planning import SourceOffset
from tidelog.spark.reader import cluster_of

log = logging.getLogger(__name__)


class Writer(Protocol):
    """Writes the batches of a query. ``format``: the Spark source that delivers them; ``counts``: since the start."""

    format: str
    counts: Counts

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """Sinks by name."""
        ...

    @property
    def options(self) -> dict[str, str]:
        """Options for the source beside its own; known after ``check``."""
        ...

    def check(self, spark: Any) -> None:
        """Check everything that can be known before the query runs."""
        ...

    def remembered(self) -> dict[str, BatchIdentity | None]:
        """The newest batch of each sink that keeps it."""
        ...

    def write(self, frame: Any, batch_id: int, ranges: tuple[OffsetRange, ...], span: Span | None = None) -> None:
        """Write a batch to all sinks. Harmless when it has landed. ``span``: see ``BatchWriter.write``."""
        ...

    def stream(self, frames: dict[str, Any]) -> Any:
        """The rows of a query with state, from the streams of its sources."""
        ...


class Counted(Protocol):
    """What a run asks of a query's writer."""

    counts: Counts

    @property
    def sinks(self) -> Mapping[str, Any]:
        """Sinks by name."""
        ...


class Query(Protocol):
    """One query of a run. ``query``: Spark's, None before ``start``."""

    flow: Flow
    query: Any

    @property
    def writer(self) -> Counted:
        """The writer of the query's batches."""
        ...

    @property
    def done(self) -> tuple[OffsetRange, ...]:
        """The offsets of the last batch that is complete in all sinks."""
        ...

    def prepare(self, from_here: frozenset[str] = frozenset()) -> None:
        """Check everything that can be wrong before a row moves."""
        ...

    def ends(self) -> dict[TopicPartition, int]:
        """Where the topics end now."""
        ...

    def start(self, *, once: bool) -> None:
        """Begin to run; returns at once."""
        ...

    def resting(self) -> bool:
        """Whether stopping now would repeat little or nothing."""
        ...

    def columns(self) -> dict[str, dict[str, str]]:
        """By source, the columns of its records and their types; known after ``prepare``."""
        ...


def query_of(model: PipelineModel, flow: Flow, spark: Any) -> Query:
    """The query for the pipeline's engine."""
    if model.engine is Engine.JVM:
        from tidelog.pipeline.realtime.query import RealTimeQuery

        return RealTimeQuery(model, flow, spark)
    return FlowQuery(model, flow, spark)


def writer_of(model: PipelineModel, flow: Flow) -> Writer:
    """The writer for the pipeline's engine."""
    if model.engine is Engine.BULK:
        from tidelog.pipeline.bulk.flow import BulkWriter  # It needs pyarrow and PySpark.

        return BulkWriter(model, flow)
    return BatchWriter(model, flow)


class FlowQuery:
    """One query of a pipeline: ``prepare``, then ``start``."""

    def __init__(self, model: PipelineModel, flow: Flow, spark: Any) -> None:
        self._model = model
        self.flow = flow
        self._spark = spark
        self.writer = writer_of(model, flow)
        self.checkpoint = Checkpoint(HadoopFiles(spark), checkpoint_path(model, flow))
        self.done: tuple[OffsetRange, ...] = ()
        self.query: Any = None
        self._settings = parse_settings(dict(model.kafka))
        self._cluster = cluster_of(self._settings)
        self._first_batch = 0

    def prepare(self, from_here: frozenset[str] = frozenset()) -> None:
        """Check everything that can be wrong before a batch runs: sinks, schemas, topics, and the checkpoint against the
        tables."""
        self.writer.check(self._spark)
        resume = self._resume(from_here)
        begun = self.checkpoint.planned() >= 0
        said = " ".join(source.start for source in self.flow.sources)
        start = self.checkpoint.start()
        # Before the first batch, the recorded start holds ("latest" was then), unless the user changed it since.
        if start is None or not (begun or (resume.begin is None and start.said == said)):
            start = Start(resume.first_batch, self._begin(resume), said)
            if not begun:
                self.checkpoint.begin(start)
        self._first_batch = start.first_batch
        if resume.again is not None:
            self._write_again(resume.again)
        self._start = start.offset

    def _write_again(self, again: BatchIdentity) -> None:
        source = self.flow.sources[0]
        _, ids = partitions_of(self._cluster, source)
        gone = sorted({piece.topic for piece in again.ranges if ids.get(piece.topic, "") != piece.topic_id})
        if gone:  # Where the loss is not accepted, ``decide`` has refused already.
            log.warning(
                "Batch %d cannot be read again, since %s was deleted and created again: some sinks lack it.",
                again.batch_id,
                gone[0],
            )
            return
        self.writer.write(read_ranges(self._spark, self._model, source, again.ranges), again.batch_id, again.ranges)

    def _resume(self, from_here: frozenset[str]) -> Resume:
        start, planned = self.checkpoint.start(), self.checkpoint.planned()
        base = start.first_batch if start is not None else 0
        committed = self.checkpoint.committed()
        seen = Seen(
            self.checkpoint.path,
            base + planned if planned >= 0 else -1,
            base + committed if committed >= 0 else -1,
            self.checkpoint.ranges(planned) if planned >= 0 else (),
        )
        always = frozenset(name for name, sink in self.writer.sinks.items() if sink.remembers)
        return decide(seen, self.writer.remembered(), always, remembers=self.flow.remembers, from_here=from_here)

    def _begin(self, resume: Resume) -> SourceOffset:
        positions, ids = {}, {}
        for source in self.flow.sources:
            if resume.begin is None:
                found = first_offsets(self._cluster, source, self._settings.isolation_level)
            else:
                found = continued(self._cluster, source, resume.begin)
            positions.update(found.positions)
            ids.update(found.ids)
        return SourceOffset(positions, ids)

    def start(self, *, once: bool) -> None:
        """Begin to run; returns at once."""
        streams = {source.name: self._stream(source) for source in self.flow.sources}
        frame = self.writer.stream(streams) if self.flow.remembers else next(iter(streams.values()))
        upsert = self.flow.remembers and self.flow.sinks[0].mode is Mode.UPSERT
        writer = frame.writeStream.foreachBatch(self._batch).queryName(f"{self._model.name}.{self.flow.name}")
        writer = writer.outputMode("update" if upsert else "append").option("checkpointLocation", self.checkpoint.path)
        trigger = {"availableNow": True} if once else {"processingTime": f"{self._model.trigger_ms} milliseconds"}
        self.query = writer.trigger(**trigger).start()

    def ends(self) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for source in self.flow.sources:
            partitions, _ = partitions_of(self._cluster, source)
            found |= self._cluster.offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), self._settings.isolation_level)
        return found

    def columns(self) -> dict[str, dict[str, str]]:
        plans = self.writer.plans if isinstance(self.writer, BatchWriter) else {}
        return {name: columns_of(plan) for name, plan in plans.items()}

    def resting(self) -> bool:
        """Whether no batch is being written."""
        return not self.query.status["isTriggerActive"]

    def _batch(self, frame: Any, spark_batch: int) -> None:
        begin, end = self.checkpoint.span(spark_batch)
        ranges = ranges_between(begin, end)
        before = self.writer.counts.bad
        self.writer.write(frame, self._first_batch + spark_batch, ranges, (begin, end))
        self.writer.counts.ended(spark_batch, before)
        self.done = ranges

    def _stream(self, source: Source) -> Any:
        most = records_per_batch(self._model, self.flow, source, self._spark)
        options = {
            **{f"kafka.{name}": value for name, value in self._model.kafka},
            **dict(source.options),
            **({"subscribe": ",".join(source.topics)} if source.topics else {"subscribePattern": source.pattern}),
            **({"maxOffsetsPerTrigger": str(most)} if most and not _says_limit(source) else {}),
            "startingOffsets": starting_offsets(self._cluster, source, self._start),
            "failOnDataLoss": str(source.fail_on_data_loss).lower(),
            "includeHeaders": str(source.headers).lower(),
            **self.writer.options,
        }
        return self._spark.readStream.format(self.writer.format).options(**options).load()


def _says_limit(source: Source) -> bool:
    """Whether the source's options have a limit for batches, which holds if ``max_records`` is not there."""
    return source.max_records is None and any(name.lower() == "maxoffsetspertrigger" for name, _ in source.options)


def read_ranges(spark: Any, model: PipelineModel, source: Source, ranges: tuple[OffsetRange, ...]) -> Any:
    """Exactly these records, as a batch."""
    options = {
        **{f"kafka.{name}": value for name, value in model.kafka},
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "includeHeaders": str(source.headers).lower(),
        **range_options(ranges),
    }
    return spark.read.format("tidelog").options(**options).load()
