"""What every sink keeps to, and how a batch is known: the contract that makes a pipeline exactly once.

A batch is known by its pipeline, sink and number, and by the offsets that it read of each topic (with the topic's id, so that a
topic that was deleted and made again is another one). A sink writes rows and identity in one commit. A driver that died between
two sinks runs the batch again with the same identity and the same offsets; a sink that has it already does nothing.

Numbers of one pipeline and sink only grow, also over a checkpoint that was lost: the runner goes on from ``last_committed``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

RECORD = "tidelog"
"""The key under which an identity lies in a table's commit metadata (Delta's userMetadata, Iceberg's snapshot properties)."""


class SinkError(Exception):
    """A sink cannot do what was asked; the text says what was found and what to do."""


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets of one partition that a batch read, ``end`` not included. ``topic_id``: as text, empty where a cluster has none."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """One batch on its way into one sink. ``ranges`` are sorted, so that the same batch is always the same text."""

    pipeline: str
    sink: str
    batch_id: int
    ranges: tuple[OffsetRange, ...]

    @property
    def application(self) -> str:
        """Who writes, for stores that keep a number per writer (Delta's txnAppId)."""
        return f"tidelog:{self.pipeline}:{self.sink}"

    def to_json(self) -> str:
        """As it lies beside the rows."""
        ranges = [[r.topic, r.topic_id, r.partition, r.start, r.end] for r in self.ranges]
        record = {"pipeline": self.pipeline, "sink": self.sink, "batch_id": self.batch_id, "ranges": ranges}
        return json.dumps({RECORD: record}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> BatchIdentity | None:
        """None when the text is not one of ours: others may write to the same table."""
        try:
            record = json.loads(text or "")[RECORD]
            ranges = tuple(OffsetRange(str(r[0]), str(r[1]), int(r[2]), int(r[3]), int(r[4])) for r in record["ranges"])
            return cls(str(record["pipeline"]), str(record["sink"]), int(record["batch_id"]), ranges)
        except (ValueError, KeyError, TypeError, IndexError):
            return None


def is_there(last: BatchIdentity | None, identity: BatchIdentity, place: str) -> bool:
    """Whether a store whose newest batch is ``last`` has this one. SinkError when its number is there with other offsets."""
    if last is None or last.batch_id < identity.batch_id:
        return False
    if last.batch_id == identity.batch_id and last.ranges != identity.ranges:
        raise SinkError(
            f"{place} has batch {identity.batch_id} of {identity.application} with other offsets: two "
            "pipelines write under one name. Give one of them another name."
        )
    return True


class Sink(Protocol):
    """A kind of sink, made for one sink of one pipeline. Used by one thread of the driver.

    ``remembers``: whether ``last_committed`` knows. One that cannot (a console) may see a batch twice.
    """

    remembers: bool

    def check(self, spark: Any) -> None:
        """Before anything runs. SinkError when something is missing, with what to install or to change."""

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        """Rows (a batch DataFrame) and identity in one commit; nothing when ``identity`` is there already.

        SinkError when the same number is there with other offsets: then two pipelines write under one name.
        """

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether this batch is there."""

    def last_committed(self) -> BatchIdentity | None:
        """The newest batch that the store itself remembers; None when it is new or cannot know (a console)."""


@runtime_checkable
class FillsIn(Protocol):
    """A sink that can be told to write only rows that its table lacks."""

    def fill_in(self, place: tuple[str, ...], unplaced: str = "") -> None:
        """From now on append only rows of whose ``place`` (columns) the table has none. Upserts are so already.

        ``unplaced``: the column that tells rows apart where the place of one has a NULL.
        """
