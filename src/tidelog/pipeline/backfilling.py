"""Records of a time range into Delta and HBase tables that lack them, beside the live run.

What a table has already stays as it is: a table that is appended to gets the rows whose topic, partition and offset it does not
have, one with keys gets the newest row of each key. So a backfill may be repeated, and may overlap what the live run has written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.ids import LATEST_TIMESTAMP, TopicPartition
from tidelog.pipeline.batches import BatchWriter
from tidelog.pipeline.engines import needs_spark
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import Flow, flows
from tidelog.pipeline.model import PipelineModel, SinkSpec
from tidelog.pipeline.queries import read_ranges
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.sinks.kinds import KINDS
from tidelog.pipeline.starts import Asked, partitions_of
from tidelog.spark.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What was read again of a source, and the sinks that were left out because they cannot be filled in."""

    source: str
    records: int
    left_out: tuple[str, ...]


def backfill(model: PipelineModel, spark: Any, from_ms: int, to_ms: int | None) -> Iterator[Backfilled]:
    """Fill in what lies between two times (``to_ms`` None: up to now). Windows are left out: they take no rows out of time."""
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
            _fill(model, _only(flow, wanted), spark, ranges)
            left_out = tuple(sink.name for sink in flow.sinks if sink not in wanted)
            yield Backfilled(flow.name, sum(piece.end - piece.start for piece in ranges), left_out)
    finally:
        cluster.close()


def _only(flow: Flow, sinks: list[SinkSpec]) -> Flow:
    return Flow(flow.name, flow.sources, flow.transforms, tuple(sinks), False)


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
