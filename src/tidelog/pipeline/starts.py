"""Where the first batch of a query begins, as offsets with topic ids: where a source starts, or where a table ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Protocol

from tidelog.client.metadata import Topic
from tidelog.model.ids import EARLIEST_TIMESTAMP, ZERO_UUID, TopicPartition, uuid_to_text
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.model import Source
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark.bounds import resolve
from tidelog.spark.options import Bound
from tidelog.spark.planning import SourceOffset, recreated

log = logging.getLogger(__name__)


class Asked(Protocol):
    """What this module asks a cluster."""

    def topics(self, names: tuple[str, ...] | None, pattern: str | None = None) -> dict[str, Topic]:
        """The topics as they are now."""
        ...

    def offsets(self, wanted: Mapping[TopicPartition, int], isolation_level: int = 0) -> dict[TopicPartition, int]:
        """Offsets at timestamps."""
        ...


def partitions_of(cluster: Asked, source: Source) -> tuple[list[TopicPartition], dict[str, str]]:
    """The present partitions of a source, and the ids of its topics."""
    topics = cluster.topics(source.topics or None, source.pattern or None)
    ids = {name: uuid_to_text(topic.topic_id) for name, topic in topics.items() if topic.topic_id != ZERO_UUID}
    return [TopicPartition(name, p) for name, topic in topics.items() for p in topic.leaders], ids


def first_offsets(cluster: Asked, source: Source, isolation_level: int) -> SourceOffset:
    """``start`` as offsets now. They are recorded before the first batch, so that a restart does not ask again."""
    partitions, ids = partitions_of(cluster, source)
    if source.start.isdecimal():
        bound = Bound(timestamp=int(source.start), or_latest=True)
    else:
        bound = Bound(word=source.start)
    return SourceOffset(resolve(cluster, partitions, bound, isolation_level=isolation_level, option="start"), ids)


def continued(cluster: Asked, source: Source, end: SourceOffset) -> SourceOffset:
    """The end of a table, for the topics as they are now. PipelineFailure when a topic was deleted and created again."""
    partitions, ids = partitions_of(cluster, source)
    again = recreated(end, SourceOffset({}, ids))
    for topic in sorted(again):
        problem = (
            f"The topic {topic} was deleted and created again since the last batch: its id was {end.ids[topic]} and is "
            f"{ids[topic]}."
        )
        if source.fail_on_data_loss:
            raise PipelineFailure(
                f"{problem} The unread records of the old one are gone. To read the new one from its beginning, say "
                f"on_data_loss: log for the source {source.name}."
            )
        log.warning("%s The new one is read from its beginning.", problem)
    known = {at: end.positions[at] for at in partitions if at in end.positions and at.topic not in again}
    new = [at for at in partitions if at not in known]
    return SourceOffset(known | (cluster.offsets(dict.fromkeys(new, EARLIEST_TIMESTAMP)) if new else {}), ids)


def starting_offsets(cluster: Asked, source: Source, start: SourceOffset) -> str:
    """The option for Spark's source: ``start``, and the beginning (-2) of newer partitions."""
    partitions, _ = partitions_of(cluster, source)
    return as_json({at: start.positions.get(at, EARLIEST_TIMESTAMP) for at in partitions})


def as_json(positions: Mapping[TopicPartition, int]) -> str:
    """Offsets by partition, in the form of Spark's Kafka connector."""
    return json.dumps(SourceOffset(dict(positions)).to_json())


def range_options(ranges: tuple[OffsetRange, ...]) -> dict[str, Any]:
    """Options of ``spark.read`` for exactly these ranges."""
    assigned: dict[str, list[int]] = {}
    for piece in ranges:
        assigned.setdefault(piece.topic, []).append(piece.partition)
    return {
        "assign": json.dumps(assigned),
        "startingOffsets": as_json({TopicPartition(piece.topic, piece.partition): piece.start for piece in ranges}),
        "endingOffsets": as_json({TopicPartition(piece.topic, piece.partition): piece.end for piece in ranges}),
    }
