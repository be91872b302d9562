"""The offsets of a batch: what Spark keeps in its checkpoint, limits, and how ranges are cut into tasks.

An offset in the checkpoint is the connector's JSON, ``{"topic": {"0": 23}}``, plus ``"@ids": {"topic": "<topic id>"}``: no topic
can have that name, and the id tells a topic that was deleted and created again from one that grew. An offset without ids, as the
connector writes it, is read too. Spark compares texts, so the same offsets are always the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition

IDS = "@ids"


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The next offset to read of each partition, and the id (text) that each topic had then."""

    positions: dict[TopicPartition, int]
    ids: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The form in Spark's checkpoint."""
        topics: dict[str, Any] = {}
        for at in sorted(self.positions):
            topics.setdefault(at.topic, {})[str(at.partition)] = self.positions[at]
        ids = {topic: self.ids[topic] for topic in topics if topic in self.ids}
        return {IDS: ids, **topics} if ids else topics

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> SourceOffset:
        """ConfigError for other content."""
        positions: dict[TopicPartition, int] = {}
        try:
            for topic, partitions in said.items():
                if topic != IDS:
                    for partition, offset in partitions.items():
                        positions[TopicPartition(topic, int(partition))] = int(offset)
            return cls(positions, dict(said.get(IDS, {})))
        except (AttributeError, TypeError, ValueError):
            raise ConfigError(
                f"The checkpoint holds the offset {str(said)[:200]!r}, which this source did not write: "
                "start the query with a checkpoint location of its own."
            ) from None


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition, ``end`` not included."""

    at: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets; records may be fewer."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Loss:
    """Records that cannot be read any more, a sentence for each case."""

    sentences: tuple[str, ...] = ()


def next_ranges(
    start: SourceOffset, end: SourceOffset, earliest: Mapping[TopicPartition, int]
) -> tuple[tuple[OffsetRange, ...], Loss]:
    """The ranges between two offsets, and what of them is known to be lost. ``earliest``: where ``unseen`` partitions begin.

    Such a partition is read from offset 0; records deleted before its first batch could be planned are lost. For other
    partitions, the task that reads them finds out what is gone.
    """
    ranges, lost = [], []
    replaced = recreated(start, end)
    for at in sorted(set(start.positions) - set(end.positions)):
        lost.append(f"{at} is not there any more; it was read up to offset {start.positions[at]}")
    for topic in sorted(replaced):
        lost.append(
            f"topic {topic} was deleted and created again: its id was {start.ids[topic]} and is {end.ids[topic]}. "
            "The unread records of the old one are gone; the new one is read from its beginning"
        )
    new = unseen(start, end)
    for at, stop in sorted(end.positions.items()):
        position = earliest.get(at, 0) if at in new else start.positions[at]
        if at in new and position > 0:
            lost.append(f"{at} is new to this query, and its offsets before {position} were deleted before they could be read")
        if stop < position and at not in new:
            lost.append(f"{at} ends at offset {stop}, and was read up to {position} before: the cluster lost records")
        if position < stop:
            ranges.append(OffsetRange(at, position, stop))
    return tuple(ranges), Loss(tuple(lost))


def unseen(start: SourceOffset, end: SourceOffset) -> frozenset[TopicPartition]:
    """Partitions of ``end`` that ``start`` does not have: new ones, and those of a topic that has another id now."""
    replaced = recreated(start, end)
    return frozenset(at for at in end.positions if at not in start.positions or at.topic in replaced)


def recreated(start: SourceOffset, end: SourceOffset) -> frozenset[str]:
    """Topics whose id has changed."""
    return frozenset(topic for topic, topic_id in end.ids.items() if start.ids.get(topic, topic_id) != topic_id)


def limited(available: Mapping[TopicPartition, tuple[int, int]], max_offsets: int) -> dict[TopicPartition, int]:
    """The end for each partition when ``max_offsets`` of what is available, (start, end), may be read.

    Shares are proportional to what is available; a partition with records gets at least one offset if there are enough for all.
    """
    waiting = {at: end - start for at, (start, end) in sorted(available.items()) if end > start}
    total = sum(waiting.values())
    if total <= max_offsets:
        return {at: max(start, end) for at, (start, end) in available.items()}
    least = 1 if max_offsets >= len(waiting) else 0
    spare = max_offsets - least * len(waiting)
    rest = total - least * len(waiting)
    shares = {at: least + (size - least) * spare // rest for at, size in waiting.items()}
    left = max_offsets - sum(shares.values())
    # The remainder from rounding down goes to the largest fractions; names decide between equals.
    by_remainder = sorted(waiting, key=lambda at: (-((waiting[at] - least) * spare % rest), at))
    for at in by_remainder[:left]:
        shares[at] += 1
    return {at: start + shares.get(at, 0) for at, (start, end) in available.items()}


def split(
    ranges: tuple[OffsetRange, ...], min_partitions: int | None = None, max_records: int | None = None
) -> tuple[OffsetRange, ...]:
    """The ranges cut into tasks: no piece longer than ``max_records``, at least ``min_partitions`` where that can be."""
    pieces = ranges
    if max_records is not None:
        pieces = tuple(piece for whole in pieces for piece in _cut(whole, -(-whole.size // max_records)))
    if min_partitions is not None and len(pieces) < min_partitions:
        total = sum(piece.size for piece in pieces)
        pieces = tuple(part for whole in pieces for part in _cut(whole, -(-whole.size * min_partitions // total)))
    return pieces


def _cut(whole: OffsetRange, count: int) -> tuple[OffsetRange, ...]:
    count = max(1, min(count, whole.size))
    marks = [whole.start + whole.size * i // count for i in range(count + 1)]
    return tuple(OffsetRange(whole.at, a, b) for a, b in pairwise(marks))
