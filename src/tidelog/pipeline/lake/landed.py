"""Has this batch landed? What a table keeps about an application, and what follows for a batch.

For each application (a sink of a pipeline) a table keeps the number of its newest batch and, for each partition by topic id, the
offsets that it has: from ``first`` to before ``next``, without a gap. They are committed together with the rows. So a repeated
batch (the driver died after the commit, or a second driver runs by mistake) is recognized by its offsets, whatever the checkpoint
says. Progress never goes back: offsets below ``next`` are there completely, or it is an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError

PartitionKey = tuple[str, str, int]
"""(topic, topic id as text, partition): a topic that was deleted and created again is another one."""
_NAMED = 5
"""How many partitions an error names."""


class Verdict(Enum):
    """What to do with a batch."""

    NEW = auto()
    LANDED = auto()


@dataclass(frozen=True, slots=True)
class Progress:
    """What a table has of one application. ``batch_id`` -1: nothing. ``last``: the newest batch, where the store keeps it."""

    batch_id: int = -1
    last: BatchIdentity | None = None
    positions: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)

    def after(self, identity: BatchIdentity) -> Progress:
        """The progress with this batch added."""
        positions = dict(self.positions)
        for piece in identity.ranges:
            first, _ = positions.get(key_of(piece), (piece.start, piece.start))
            positions[key_of(piece)] = (first, piece.end)
        return Progress(identity.batch_id, identity, positions)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        rows = [[*key, *span] for key, span in sorted(self.positions.items())]
        last = None if self.last is None else json.loads(self.last.to_json())
        return {"batch_id": self.batch_id, "last": last, "positions": rows}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Progress:
        """The inverse of ``to_json``. SinkError for other text."""
        try:
            positions = {(str(r[0]), str(r[1]), int(r[2])): (int(r[3]), int(r[4])) for r in said["positions"]}
            return cls(int(said["batch_id"]), BatchIdentity.from_json(json.dumps(said["last"])), positions)
        except (KeyError, IndexError, TypeError, ValueError):
            raise SinkError(f"The progress in the table cannot be read: {str(said)[:200]}.") from None


def key_of(piece: OffsetRange) -> PartitionKey:
    """The key of a range's partition."""
    return piece.topic, piece.topic_id, piece.partition


def judge(progress: Progress, identity: BatchIdentity) -> Verdict:
    """Whether the batch is new or landed. SinkError if it is neither: part of it is there, or other offsets under its number."""
    if identity.batch_id > progress.batch_id:
        again = [piece for piece in identity.ranges if _touches(progress, piece)]
        if not again:
            return Verdict.NEW
        raise SinkError(
            f"{_name(identity)} brings {_said(again)}, and the table has these partitions up to {_positions(progress, again)} "
            "already: another checkpoint wrote the table, or two pipelines share a name. Continue with startingOffsets="
            f"{starting_offsets(progress)}, or give the pipeline another name."
        )
    if identity.batch_id == progress.batch_id and progress.last is not None:
        there = progress.last.ranges == identity.ranges
    else:
        there = all(_covered(progress, piece) for piece in identity.ranges)
    if there:
        return Verdict.LANDED
    raise SinkError(
        f"{_name(identity)} brings {_said(identity.ranges)}, and the table is at batch {progress.batch_id} with "
        f"{_positions(progress, identity.ranges)}: another driver writes under this name, or the checkpoint is another one. "
        "Nothing "
        "was written; stop one of the two, or give the pipeline another name."
    )


def _touches(progress: Progress, piece: OffsetRange) -> bool:
    span = progress.positions.get(key_of(piece))
    return span is not None and piece.start < span[1] and piece.end > span[0]


def _covered(progress: Progress, piece: OffsetRange) -> bool:
    span = progress.positions.get(key_of(piece))
    return span is not None and span[0] <= piece.start and piece.end <= span[1]


def missing(progress: Progress, identity: BatchIdentity) -> list[str]:
    """Offsets between the table's end and the batch's begin: never read, or read into another table."""
    found = []
    for piece in identity.ranges:
        span = progress.positions.get(key_of(piece))
        if span is not None and piece.start > span[1]:
            found.append(f"{piece.topic}-{piece.partition}: offsets {span[1]} to {piece.start - 1}")
    return found


def starting_offsets(progress: Progress) -> str:
    """Where the table ends, in the form of the option ``startingOffsets``."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, _, partition), (_, following) in sorted(progress.positions.items()):
        topics.setdefault(topic, {})[str(partition)] = following
    return json.dumps(topics)


def _name(identity: BatchIdentity) -> str:
    return f"Batch {identity.batch_id} of {identity.application}"


def _said(pieces: list[OffsetRange] | tuple[OffsetRange, ...]) -> str:
    shown = ", ".join(f"{piece.topic}-{piece.partition} {piece.start} to {piece.end - 1}" for piece in pieces[:_NAMED])
    return (shown or "no offsets") + (", ..." if len(pieces) > _NAMED else "")


def _positions(progress: Progress, pieces: list[OffsetRange] | tuple[OffsetRange, ...]) -> str:
    shown = []
    for piece in pieces[:_NAMED]:
        span = progress.positions.get(key_of(piece))
        shown.append(f"{piece.topic}-{piece.partition} " + ("unknown" if span is None else f"{span[0]} to {span[1] - 1}"))
    return ", ".join(shown) or "nothing"
