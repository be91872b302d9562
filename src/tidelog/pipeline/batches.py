"""One batch of a query: decoded, checked against the rules, transformed, and written to all sinks under one identity.

Everything here may run twice for one batch. That is harmless: the offsets and the order of sinks are the same, and a sink that
has the batch does nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from tidelog.pipeline import expectations, transforming
from tidelog.pipeline.decoding import ASIDE, PLACE, SourcePlan, decoded, explained, needs_columns, plan
from tidelog.pipeline.expectations import Counting, judge
from tidelog.pipeline.failures import PipelineFailure, kind
from tidelog.pipeline.flows import Flow
from tidelog.pipeline.model import Evolution, OnError, Otherwise, PipelineModel, SinkSpec, Transform
from tidelog.pipeline.plain_reading import PlainBatch, PlainReader, Span
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.sinks.base import BatchIdentity, FillsIn, OffsetRange, Sink, TakesOnce
from tidelog.pipeline.sinks.kinds import make_sink

EVOLVING = ("delta", "iceberg", "parquet")
"""Kinds of sinks that can add columns to a table."""


class BatchWriter:
    """Writes the batches of one query. For one thread at a time."""

    format = "tidelog"

    def __init__(self, model: PipelineModel, flow: Flow, prefix: str = "") -> None:
        self._model = model
        self._flow = flow
        self.counts = Counts()
        self._specs = {spec.name: replace(spec, name=prefix + spec.name) for spec in flow.sinks}
        self.sinks: dict[str, Sink] = {name: make_sink(spec, model) for name, spec in self._specs.items()}
        self._letters = self._side(model.dead_letters, f"{prefix}dead_letters.{flow.name}") if not flow.remembers else None
        self._quarantine = self._side(_growing(model.quarantine), f"{prefix}quarantine.{flow.name}")
        self.plans: dict[str, SourcePlan] = {}
        self._reader = None if flow.remembers else PlainReader(model, flow.sources[0])

    def _side(self, spec: SinkSpec | None, name: str) -> tuple[str, Sink] | None:
        return None if spec is None else (name, make_sink(replace(spec, name=name), self._model))

    def fill_in(self) -> None:
        """From now on write only rows that the tables lack (a backfill). PipelineFailure for a sink that cannot find out
        which."""
        for name, sink in self.sinks.items():
            if not isinstance(sink, FillsIn):
                raise PipelineFailure(f"The sink {name} does not know which rows it has, so a backfill cannot write to it.")
            sink.fill_in(PLACE[:3])
        if self._letters is not None and isinstance(self._letters[1], FillsIn):
            self._letters[1].fill_in(("source", "topic", "partition", "offset"))
        if self._quarantine is not None and isinstance(self._quarantine[1], FillsIn):
            self._quarantine[1].fill_in(("transform", "topic", "partition", "offset"), "row")

    @property
    def options(self) -> dict[str, str]:
        return {}

    def check(self, spark: Any) -> None:
        """Check all sinks and schemas before anything runs."""
        for sink in self._every():
            sink.check(spark)
        for source in self._flow.sources:
            self.plans[source.name] = plan(source, self._model.registry)

    def remembered(self) -> dict[str, BatchIdentity | None]:
        """The newest batch of each sink that keeps it."""
        found = {self._specs[name].name: sink.last_committed() for name, sink in self.sinks.items() if sink.remembers}
        for side in (self._letters, self._quarantine):
            if side is not None and side[1].remembers:
                found[side[0]] = side[1].last_committed()
        return found

    def number_at(self, now_ms: int) -> int:
        """A batch number made from the clock, larger than every number that the sinks have: clocks can go back, and a sink
        skips a batch whose number it has. Call ``check`` first."""
        return max([now_ms, *(found.batch_id + 1 for found in self.remembered().values() if found is not None)])

    def write(self, frame: Any, batch_id: int, ranges: tuple[OffsetRange, ...], span: Span | None = None) -> None:
        """Write a batch: raw records, or the finished rows of a query with state. ``span``: where the batch begins and ends, if
        it may be read from there instead of from ``frame``."""
        identity = BatchIdentity(self._model.name, "", batch_id, ranges)
        try:
            self._write(frame, identity, span)
        except Exception as error:
            if kind(error) != "SchemaMoved":
                raise
            # A producer uses a newer schema than ours: fetch it and try again, once.
            for source in self._flow.sources:
                self.plans[source.name] = plan(source, self._model.registry)
            self._write(frame, identity, span)
        self.counts.records += sum(piece.end - piece.start for piece in ranges)

    def stream(self, frames: dict[str, Any]) -> Any:
        """The rows of a query with state: the raw streams of its sources, decoded and transformed."""
        good = {name: self._good(decoded(frame, self.plans[name])) for name, frame in frames.items()}
        last = self._flow.sinks[0].input

        def judged(frame: Any, transform: Transform) -> Any:
            return frame if transform.name == last else expectations.kept(frame, transform)

        return transforming.apply(good, self._flow.transforms, self._model, judged)[last]

    def _write(self, frame: Any, identity: BatchIdentity, span: Span | None) -> None:
        held: list[Any] = []
        aside: list[Any] = []
        counted: list[tuple[str, Counting]] = []
        broken: Counter[tuple[str, str]] = Counter()

        def judged(rows: Any, transform: Transform) -> Any:
            if self._passes_once(transform, identity):
                counting = expectations.counting(rows, transform)
                counted.append((transform.name, counting))
                return counting.good
            result = judge(rows, transform)
            held.append(result.held)
            aside.extend([] if result.aside is None else [result.aside])
            broken.update({(transform.name, rule): count for rule, count in result.broken.items()})
            return result.good

        try:
            if self._flow.remembers:
                frames = self._from_stream(frame, judged)
                bad = 0
            else:
                rows, bad = self._from_records(frame, identity, held, span)
                frames = transforming.apply(rows, self._flow.transforms, self._model, judged)
            if self._quarantine is not None and aside:
                name, sink = self._quarantine
                together = aside[0]
                for more in aside[1:]:
                    together = together.unionByName(more)
                sink.write(together, replace(identity, sink=name))
            for spec in self._flow.sinks:
                self.sinks[spec.name].write(frames[spec.input], replace(identity, sink=self._specs[spec.name].name))
            for transform, counting in counted:
                broken.update({(transform, rule): count for rule, count in counting.broken().items()})
            self.counts.undecodable += bad
            self.counts.broken.update(broken)
        finally:
            for rows in held:
                rows.unpersist()

    def _from_stream(self, frame: Any, judged: Any) -> dict[str, Any]:
        last = self._model.transform(self._flow.sinks[0].input)
        if last is not None and last.expectations:
            frame = judged(frame, last)
        return {self._flow.sinks[0].input: frame}

    def _passes_once(self, transform: Transform, identity: BatchIdentity) -> bool:
        """Whether one sink takes the rows of a transform, and takes them once: then the rules are counted on their way there."""
        if len(self._flow.sinks) != 1 or any(rule.otherwise is not Otherwise.DROP for rule in transform.expectations):
            return False
        (spec,) = self._flow.sinks
        sink = self.sinks[spec.name]
        if spec.input != transform.name or not isinstance(sink, TakesOnce) or not sink.takes_once:
            return False
        return not sink.committed(replace(identity, sink=self._specs[spec.name].name))

    def _from_records(
        self, frame: Any, identity: BatchIdentity, held: list[Any], span: Span | None
    ) -> tuple[dict[str, Any], int]:
        """The good rows by name of the source, and the number of bad ones, which are written to the dead letters first."""
        source = self._flow.sources[0]
        plan = self.plans[source.name]
        # The query's own session, not the pipeline's: views of other queries have the same names.
        session = frame.sparkSession
        batch = self._reader.batch(session, plan, span) if span is not None and self._reader is not None else None
        if batch is not None and not batch.empty:
            good, bad = self._from_plain(batch, plan, identity, held)
            return {source.name: good}, bad
        rows = decoded(frame, plan)
        can_fail = needs_columns(source.key) or needs_columns(source.value)
        if can_fail or len(self._flow.sinks) > 1:
            rows = rows.persist()
            held.append(rows)
        bad = self._set_aside(rows, identity) if can_fail else 0
        return {source.name: self._good(rows)}, bad

    def _from_plain(self, batch: PlainBatch, plan: SourcePlan, identity: BatchIdentity, held: list[Any]) -> tuple[Any, int]:
        """The good rows of a batch that is read twice, and the number of bad ones."""
        few = batch.few_odd()
        bad = odd = 0
        good = batch.plain()
        if few is None or few.num_rows:
            rows = decoded(batch.odd() if few is None else batch.from_table(few), plan).persist()
            held.append(rows)
            odd = int(rows.count()) if few is None else few.num_rows
            bad = self._set_aside(rows, identity, few=few is not None)
            if bad < odd:
                good = good.union(self._good(rows))
        if self._reader is not None:
            self._reader.learn(odd, sum(piece.end - piece.start for piece in identity.ranges))
        if len(self._flow.sinks) > 1:
            good = good.persist()
            held.append(good)
        return good, bad

    def _set_aside(self, rows: Any, identity: BatchIdentity, *, few: bool = False) -> int:
        """Do with the bad ones of decoded rows what the source says. Returns how many there are. ``few``: so few rows that a flag
        of each is cheaper than Spark's two jobs for a count."""
        source = self._flow.sources[0]
        name, on_error = source.name, source.on_error
        wrong = rows.where("_error is not null")
        bad = len(wrong.select("_offset").collect()) if few else int(wrong.count())
        if not bad or on_error is OnError.DROP:
            return bad
        wrong = explained(wrong, self.plans[name])
        if on_error is OnError.FAIL:
            first = wrong.orderBy("_topic", "_partition", "_offset").first()
            raise PipelineFailure(
                f"{bad} records of source {name} cannot be decoded, and on_error is fail. The first is {first._topic}-"
                f"{first._partition} at offset {first._offset}: {first._error}. Nothing of this batch was written. Correct the "
                "schema, or say on_error: dead_letters."
            )
        if self._letters is not None:
            letters, sink = self._letters
            sink.write(dead_letters(wrong, name), replace(identity, sink=letters))
        return bad

    def _good(self, rows: Any) -> Any:
        return rows.where("_error is null").drop(*ASIDE)

    def _every(self) -> list[Sink]:
        sides = [side[1] for side in (self._letters, self._quarantine) if side is not None]
        return [*self.sinks.values(), *sides]


def _growing(spec: SinkSpec | None) -> SinkSpec | None:
    """A sink whose table gets the columns that it lacks and that a newer version of this code writes, if its kind can add
    columns."""
    if spec is None or spec.kind not in EVOLVING or spec.evolution is not Evolution.NONE:
        return spec
    return replace(spec, evolution=Evolution.ADD)


def dead_letters(wrong: Any, source: str) -> Any:
    """Bad records as the dead letters keep them: position, error and bytes. ``replay`` is set while a record is being
    replayed."""
    from pyspark.sql import functions as F

    return wrong.select(
        F.lit(source).alias("source"),
        F.col("_topic").alias("topic"),
        F.col("_partition").alias("partition"),
        F.col("_offset").alias("offset"),
        F.col("_timestamp").alias("timestamp"),
        F.col("_error").alias("error"),
        F.col("_raw_key").alias("key"),
        F.col("_raw_value").alias("value"),
        F.current_timestamp().alias("at"),
        F.lit(None).cast("bigint").alias("replay"),
    )
