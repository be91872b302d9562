"""Where a bulk query continues: from its checkpoint, or with a new checkpoint from the table.

Spark counts the batches of a checkpoint from 0; a table counts the batches of an application over all checkpoints. So a new
checkpoint on a table with rows begins after the table's newest batch, at the offsets where the table ends, whatever
``startingOffsets`` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from tidelog.client.metadata import Topic
from tidelog.model.ids import EARLIEST_TIMESTAMP, ZERO_UUID, TopicPartition, uuid_to_text
from tidelog.pipeline.checkpoint import Checkpoint, Start
from tidelog.pipeline.lake.landed import PartitionKey, Progress
from tidelog.pipeline.lake.table import FileTable
from tidelog.spark.options import SourceOptions
from tidelog.spark.planning import SourceOffset


class Topics(Protocol):
    """What this module asks a cluster."""

    def topics(self, names: tuple[str, ...] | None, pattern: str | None = None) -> dict[str, Topic]:
        """The topics with these names, or that the pattern matches."""
        ...


def resume(
    checkpoint: Checkpoint, table: FileTable, application: str, cluster: Topics, options: SourceOptions, given: Mapping[str, str]
) -> tuple[int, dict[str, str]]:
    """The number of this checkpoint's first batch, and the source's options: ``given``, or those that continue from the table."""
    if checkpoint.planned() >= 0:
        start = checkpoint.start()
        return 0 if start is None else start.first_batch, dict(given)
    keys = partitions_of(cluster, options)
    progress = table.progress(application, tuple(keys))
    checkpoint.begin(Start(progress.batch_id + 1, SourceOffset({})))
    if progress.batch_id < 0:
        return 0, dict(given)
    kept = {name: text for name, text in given.items() if not name.lower().startswith("starting")}
    return progress.batch_id + 1, {**kept, "startingOffsets": after(progress, keys)}


def partitions_of(cluster: Topics, options: SourceOptions) -> dict[PartitionKey, TopicPartition]:
    """The partitions to read, as keys of a table's progress."""
    assigned = options.assigned
    names = options.topics if assigned is None else tuple(sorted({at.topic for at in assigned}))
    topics = cluster.topics(names, options.pattern)
    ids = {name: "" if topic.topic_id == ZERO_UUID else uuid_to_text(topic.topic_id) for name, topic in topics.items()}
    every = assigned or [TopicPartition(name, number) for name, topic in topics.items() for number in topic.leaders]
    return {(at.topic, ids[at.topic], at.partition): at for at in every}


def after(progress: Progress, keys: Mapping[PartitionKey, TopicPartition]) -> str:
    """``startingOffsets`` for a query that continues where the table ends. Partitions that the table does not know start at
    their beginning."""
    found: dict[str, dict[str, int]] = {}
    for key, at in sorted(keys.items()):
        span = progress.positions.get(key)
        found.setdefault(at.topic, {})[str(at.partition)] = EARLIEST_TIMESTAMP if span is None else span[1]
    return json.dumps(found)
