"""Fill the records of a time range into Delta and HBase tables, while the pipeline runs.

Rows in the table stay as they are. A table that is appended to gets the rows whose topic, partition and offset it does not have;
a table with keys gets the newest row of each key. So a backfill can be repeated, and can overlap the live run. It stops where the
live run has not arrived yet: the live run appends without looking at the table.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.ids import LATEST_TIMESTAMP, TopicPartition
from tidelog.pipeline.batches import BatchWriter
from tidelog.pipeline.checkpoint import Checkpoint, HadoopFiles
from tidelog.pipeline.engines import needs_spark
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import Flow, checkpoint_path, flows
from tidelog.pipeline.model import PipelineModel, SinkSpec
from tidelog.pipeline.queries import read_ranges
from tidelog.pipeline.recovery import end_of
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.sinks.kinds import KINDS, make_sink
from tidelog.pipeline.starts import Asked, first_offsets, partitions_of
from tidelog.spark.cluster import Cluster
from tidelog.spark.planning import SourceOffset


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The ranges that were read again from one source, and the sinks that a backfill cannot fill."""

    source: str
    records: int
    left_out: tuple[str, ...]


def backfill(model: PipelineModel, spark: Any, from_ms: int, to_ms: int | None) -> Iterator[Backfilled]:
    """Fill in the records between two times (``to_ms`` None: up to now). Sinks behind windows are skipped: a range has no
    whole windows."""
    needs_spark(model, "backfill")
    settings = parse_settings(dict(model.kafka))
    cluster = Cluster(settings)
    try:
        for flow in flows(model):
            if flow.remembers:
                yield Backfilled(flow.name, 0, tuple(sink.name for sink in flow.sinks))
                continue
            wanted = [sink for sink in flow.sinks if KINDS[sink.kind].fills_in]
            ranges = ranges_in(cluster, flow, from_ms, to_ms, settings.isolation_level)
            ranges = come_to(ranges, _reached(model, _only(flow, wanted), spark, cluster, settings.isolation_level))
            _fill(model, _only(flow, wanted), spark, ranges)
            left_out = tuple(sink.name for sink in flow.sinks if sink not in wanted)
            yield Backfilled(flow.name, sum(piece.end - piece.start for piece in ranges), left_out)
    finally:
        cluster.close()


def _only(flow: Flow, sinks: list[SinkSpec]) -> Flow:
    return Flow(flow.name, flow.sources, flow.transforms, tuple(sinks), False)


def _reached(model: PipelineModel, flow: Flow, spark: Any, cluster: Asked, isolation_level: int) -> list[SourceOffset]:
    """Where the live run is in each sink: read from the table, or for a sink that is new to the run, where it will start
    there."""
    found = []
    for spec in flow.sinks:
        sink = make_sink(spec, model)
        sink.check(spark)
        last = sink.last_committed()
        found.append(None if last is None else end_of(last))
    reached = [place for place in found if place is not None]
    if len(reached) < len(found) or not found:
        checkpoint = Checkpoint(HadoopFiles(spark), checkpoint_path(model, flow))
        done, start = checkpoint.committed(), checkpoint.start()
        going_on = checkpoint.end_of(done) if done >= 0 else (None if start is None else start.offset)
        reached.append(going_on or first_offsets(cluster, flow.sources[0], isolation_level))
    return reached


def come_to(ranges: tuple[OffsetRange, ...], reached: Iterable[SourceOffset]) -> tuple[OffsetRange, ...]:
    """The part of the ranges that every sink has passed. A partition that a sink does not know has not been read yet."""
    places = list(reached)

    def end(piece: OffsetRange, place: SourceOffset) -> int:
        same = place.ids.get(piece.topic, piece.topic_id) == piece.topic_id
        return place.positions.get(TopicPartition(piece.topic, piece.partition), 0) if same else 0

    return tuple(
        replace(piece, end=max(piece.start, min([piece.end, *(end(piece, place) for place in places)]))) for piece in ranges
    )


def _fill(model: PipelineModel, flow: Flow, spark: Any, ranges: tuple[OffsetRange, ...]) -> None:
    if not any(piece.end > piece.start for piece in ranges):
        return
    writer = BatchWriter(model, flow, prefix="backfill.")
    writer.fill_in()
    writer.check(spark)
    number = writer.number_at(time.time_ns() // 1_000_000)
    writer.write(read_ranges(spark, model, flow.sources[0], ranges), number, ranges)


def ranges_in(cluster: Asked, flow: Flow, from_ms: int, to_ms: int | None, isolation_level: int) -> tuple[OffsetRange, ...]:
    """The offsets whose timestamps lie in the range. PipelineFailure when the range is empty by itself."""
    if to_ms is not None and to_ms <= from_ms:
        raise PipelineFailure("--to must be later than --from.")
    partitions, ids = partitions_of(cluster, flow.sources[0])
    latest = cluster.offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation_level)

    def at_time(when: int) -> dict[TopicPartition, int]:
        found = cluster.offsets(dict.fromkeys(partitions, when), isolation_level)
        return {at: latest[at] if offset < 0 else min(offset, latest[at]) for at, offset in found.items()}

    begin = at_time(from_ms)
    end = latest if to_ms is None else at_time(to_ms)
    return tuple(
        OffsetRange(at.topic, ids.get(at.topic, ""), at.partition, begin[at], max(begin[at], end[at]))
        for at in sorted(partitions)
    )
