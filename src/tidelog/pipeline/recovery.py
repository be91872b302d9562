"""Where a query continues: its checkpoint compared with the tables. A pure decision.

Both are needed because either can be lost or restored alone, and a pipeline that believes one of them then silently loses or
doubles rows: Delta skips a batch number that it has, and Spark numbers the batches of a new checkpoint from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange
from tidelog.spark.planning import SourceOffset


@dataclass(frozen=True, slots=True)
class Seen:
    """What a checkpoint says. ``planned``, ``committed``: numbers of the pipeline, not Spark's; -1 where there is none."""

    path: str
    planned: int
    committed: int
    ranges: tuple[OffsetRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Resume:
    """What to do. ``begin``: None to continue from the checkpoint or, in a new one, where the source says. ``first_batch``:
    the number of a new checkpoint's first batch. ``again``: a batch that some sinks may lack; it is written first."""

    begin: SourceOffset | None
    first_batch: int
    again: BatchIdentity | None = None


def decide(
    seen: Seen,
    tables: Mapping[str, BatchIdentity | None],
    always: frozenset[str],
    *,
    remembers: bool,
    from_here: frozenset[str] = frozenset(),
) -> Resume:
    """What to do at the start. ``tables``: the newest batch of each sink that keeps it; ``always``: the sinks that write every
    batch.

    ``remembers``: the query has state, which is lost with its checkpoint. ``from_here``: sinks for which the user accepts that
    they lack earlier rows. PipelineFailure says what to do where continuing would lose or double rows.
    """
    written = [identity for identity in tables.values() if identity is not None]
    newest = max(written, key=lambda identity: identity.batch_id, default=None)
    fresh = seen.planned < 0
    if fresh and newest is None:
        return Resume(None, 0)
    if fresh and newest is not None and remembers:
        raise PipelineFailure(
            f"The checkpoint {seen.path} is not there, and the sink {newest.sink} has batches up to {newest.batch_id}. "
            "This query remembers earlier rows (windows, dedupe), and that memory was in the checkpoint: restore it, or "
            "give the sink a new path to compute everything again."
        )
    # Batches go to the sinks one after another, so at most the newest can be missing in some of them.
    least = newest.batch_id - 1 if fresh and newest is not None else seen.committed
    for sink in sorted(always & tables.keys() - from_here):
        identity = tables[sink]
        if least >= 0 and (identity is None or identity.batch_id < least):
            raise _behind(sink, identity, least, seen.path if not fresh else f"the sink {newest.sink if newest else ''}")
    if fresh and newest is not None:
        # Dead letters and quarantine are written first, so a batch that all the others have is complete.
        others = [tables[sink] for sink in sorted(always & tables.keys() - from_here)]
        lacking = any(found is None or found.batch_id < newest.batch_id for found in others)
        return Resume(end_of(newest), newest.batch_id + 1, newest if lacking else None)
    if newest is not None and newest.batch_id > seen.planned:
        raise PipelineFailure(
            f"The sink {newest.sink} has batches up to {newest.batch_id}, and the checkpoint {seen.path} knows of "
            f"{seen.planned} at most: it is an old copy, or two pipelines write under one name. Delete the checkpoint to "
            "continue from the table, or give one of the pipelines another name."
        )
    if newest is not None and newest.batch_id == seen.planned and newest.ranges != seen.ranges:
        raise PipelineFailure(
            f"Batch {newest.batch_id} in the sink {newest.sink} has other offsets than in the checkpoint {seen.path}: two "
            "pipelines write under one name. Give one of them another name."
        )
    return Resume(None, 0)


def _behind(sink: str, identity: BatchIdentity | None, least: int, who: str) -> PipelineFailure:
    has = "no batch of this pipeline" if identity is None else f"batches up to {identity.batch_id}"
    return PipelineFailure(
        f"The sink {sink} has {has}, and {who} has batch {least}: it is new, or its table was deleted, emptied or restored. "
        f"Restore its newest table; or run with --from-here {sink} to give it only records from now on."
    )


def end_of(identity: BatchIdentity) -> SourceOffset:
    """Where a batch ends, from its identity in a table."""
    positions = {TopicPartition(piece.topic, piece.partition): piece.end for piece in identity.ranges}
    return SourceOffset(positions, {piece.topic: piece.topic_id for piece in identity.ranges if piece.topic_id})
