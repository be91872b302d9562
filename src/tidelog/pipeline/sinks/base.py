"""The contract of sinks, and the identity of a batch: what makes a pipeline exactly once.

A batch is identified by its pipeline, sink and number, and by the offsets that it read of each topic (with the topic's id, so
that a topic that was deleted and created again is another one). A sink writes rows and identity in one commit. A driver that died
between two sinks runs the batch again with the same identity and offsets; a sink that has it does nothing.

Numbers of one pipeline and sink only grow, over a lost checkpoint too: the runner continues from ``last_committed``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

RECORD = "tidelog"
"""The key of an identity in a table's commit metadata (Delta's userMetadata, Iceberg's snapshot properties)."""


class SinkError(Exception):
    """A sink cannot do what was asked. The text says what was found and what to do."""


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
    """One batch for one sink. ``ranges`` are sorted, so that the same batch is always the same text."""

    pipeline: str
    sink: str
    batch_id: int
    ranges: tuple[OffsetRange, ...]

    @property
    def application(self) -> str:
        """The writer's name, for stores that keep a number per writer (Delta's txnAppId)."""
        return f"tidelog:{self.pipeline}:{self.sink}"

    def to_json(self) -> str:
        """The stored form, beside the rows."""
        ranges = [[r.topic, r.topic_id, r.partition, r.start, r.end] for r in self.ranges]
        record = {"pipeline": self.pipeline, "sink": self.sink, "batch_id": self.batch_id, "ranges": ranges}
        return json.dumps({RECORD: record}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> BatchIdentity | None:
        """The inverse of ``to_json``; None for other text, since others may write to the table."""
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
    """One sink of one pipeline. For one thread of the driver.

    ``remembers``: whether ``last_committed`` can know. A sink that cannot (a console) may see a batch twice.
    """

    remembers: bool

    def check(self, spark: Any) -> None:
        """Check before anything runs. SinkError when something is missing, with what to install or to change."""

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        """Rows (a batch DataFrame) and identity in one commit; nothing when ``identity`` is there already.

        SinkError when the same number is there with other offsets: then two pipelines write under one name.
        """

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether the sink has this batch."""

    def last_committed(self) -> BatchIdentity | None:
        """The newest batch that the store has; None when it has none or cannot know (a console)."""


@runtime_checkable
class FillsIn(Protocol):
    """A sink that can restrict itself to rows that its table lacks."""

    def fill_in(self, place: tuple[str, ...], unplaced: str = "") -> None:
        """From now on append only rows whose ``place`` (columns) no row of the table has. Upserts need no restriction.

        ``unplaced``: the column that tells rows apart whose place has a NULL.
        """


@runtime_checkable
class TakesOnce(Protocol):
    """A sink that may read the rows of a batch in one pass. ``takes_once``: whether it does."""

    @property
    def takes_once(self) -> bool:
        """Whether ``write`` reads all rows in one pass when it does not have the batch."""
        ...
