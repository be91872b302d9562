"""The rows of a pipeline's newest records after decoding and after each transform; nothing is written.

Offsets, checkpoints, tables and consumer groups stay as they are. What remembers rows (windows, dedupe) sees these records alone,
so its rows are those of a stream that began and ended with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from tidelog.pipeline import transforming
from tidelog.pipeline.decoding import ASIDE, decoded, explained, plan
from tidelog.pipeline.engines import needs_spark
from tidelog.pipeline.expectations import judge
from tidelog.pipeline.flows import flows
from tidelog.pipeline.model import Otherwise, PipelineModel, Source, Transform
from tidelog.pipeline.queries import read_ranges
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.starts import Asked, partitions_of
from tidelog.spark.cluster import Cluster

EXAMPLES = 3
"""Errors shown of a source."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows of a source or transform. ``problems``: reasons why records or rows are not among them, with counts."""

    name: str
    rows: Any
    """A DataFrame; valid until the next one is asked for."""
    problems: tuple[str, ...] = ()


def preview(model: PipelineModel, spark: Any, records: int) -> Iterator[Shown]:
    """First each source, read up to ``records`` records deep, then each transform in the order of the pipeline.

    ConfigError for a schema or function that cannot be found, PipelineFailure for other engines than Spark's.
    """
    needs_spark(model, "preview")
    settings = parse_settings(dict(model.kafka))
    cluster = Cluster(settings)
    held: list[Any] = []
    frames: dict[str, Any] = {}
    try:
        for source in model.sources:
            ranges = newest(cluster, source, records, settings.isolation_level)
            found = plan(source, model.registry)
            rows = decoded(read_ranges(spark, model, source, ranges), found).persist()
            held.append(rows)
            wrong = explained(rows.where("_error is not null"), found)
            frames[source.name] = rows.where("_error is null").drop(*ASIDE)
            yield Shown(source.name, frames[source.name], undecodable(wrong))
        for transform in _transforms(model):
            yield _shown(frames, transform, model, held)
    finally:
        cluster.close()
        for rows in held:
            rows.unpersist()


def newest(cluster: Asked, source: Source, records: int, isolation_level: int) -> tuple[OffsetRange, ...]:
    """The ends of the source's partitions, ``records`` offsets together. A short partition leaves its share to the others."""
    partitions, ids = partitions_of(cluster, source)
    begin = cluster.offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), isolation_level)
    end = cluster.offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation_level)
    wanted = shares({at: end[at] - begin[at] for at in partitions}, records)
    return tuple(
        OffsetRange(at.topic, ids.get(at.topic, ""), at.partition, end[at] - wanted[at], end[at]) for at in sorted(partitions)
    )


def shares(available: dict[TopicPartition, int], records: int) -> dict[TopicPartition, int]:
    """How many offsets of each partition make ``records`` together, or all there are: as even as they allow."""
    found: dict[TopicPartition, int] = {}
    left = records
    for number, at in enumerate(sorted(available, key=lambda each: (available[each], each))):
        found[at] = min(available[at], -(-left // (len(available) - number)))
        left -= found[at]
    return found


def undecodable(wrong: Any) -> tuple[str, ...]:
    """How many records cannot be decoded, and the most frequent reasons."""
    counted = wrong.groupBy("_error").count().orderBy("count", "_error", ascending=[False, True]).collect()
    if not counted:
        return ()
    total = sum(row["count"] for row in counted)
    more = len(counted) - EXAMPLES
    reasons = [f"{row['count']}  {row['_error']}" for row in counted[:EXAMPLES]]
    return (f"{total} records cannot be decoded:", *reasons, *([f"... and {more} more reasons"] if more > 0 else []))


def _transforms(model: PipelineModel) -> list[Transform]:
    """Those on the way to a sink, each once, inputs first."""
    return list({transform.name: transform for flow in flows(model) for transform in flow.transforms}.values())


def _shown(frames: dict[str, Any], transform: Transform, model: PipelineModel, held: list[Any]) -> Shown:
    # Spark has watermarks, and duplicates within them, for streams only.
    plain = replace(transform, watermark=None, dedupe=(), expectations=())
    rows = transforming.apply(frames, [plain], model, lambda frame, _: frame)[transform.name]
    if transform.dedupe:
        rows = rows.dropDuplicates(list(transform.dedupe))
    problems: tuple[str, ...] = ()
    if transform.expectations:
        rules = tuple(replace(rule, otherwise=Otherwise.DROP) for rule in transform.expectations)
        result = judge(rows, replace(transform, expectations=rules))
        held.append(result.held)
        rows = result.good
        otherwise = {rule.name: rule.otherwise for rule in transform.expectations}
        problems = tuple(
            f"{count} rows break the rule {rule} (otherwise: {otherwise[rule]})" for rule, count in result.broken.items() if count
        )
    frames[transform.name] = rows
    return Shown(transform.name, rows, problems)
