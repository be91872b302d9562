"""Dead letters: records that a share group gives up and that its dead-letter queue is to get (KIP-1191).

Such records are ARCHIVING until they are written, or until that has failed for good; then they are ARCHIVED. Meanwhile they hold
the start offset and count as in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from tidelog.replication.share.in_flight import Span
from tidelog.replication.share.record_state import RecordState


class Cause(Enum):
    """Why a record was given up; the value is the text in its dead letter."""

    REJECTED = "Offset rejected by client."
    EXHAUSTED = "Offset delivery count exceeded the threshold."


class DeadLetter(NamedTuple):
    """Offsets ``first`` to ``last`` inclusive that were given up for one cause."""

    first: int
    last: int
    delivery_count: int
    cause: Cause


def dead_letters(spans: Iterable[Span], cause: Cause) -> tuple[DeadLetter, ...]:
    """Those of the spans, which are in order, that are ARCHIVING; equal neighbours are joined."""
    found: list[DeadLetter] = []
    for span in spans:
        if span.state is not RecordState.ARCHIVING:
            continue
        last = found[-1] if found else None
        if last is not None and (last.last + 1, last.delivery_count) == (span.first, span.count):
            found[-1] = last._replace(last=span.last)
        else:
            found.append(DeadLetter(span.first, span.last, span.count, cause))
    return tuple(found)


def unfinished(spans: Iterable[tuple[int, int, RecordState, int, str | None]], limit: int) -> tuple[DeadLetter, ...]:
    """The dead letters that a leader before this one has not finished, of all that was loaded. The cause was not stored: with
    ``limit`` deliveries it is taken for their number."""
    return tuple(
        DeadLetter(first, last, count, Cause.EXHAUSTED if count >= limit else Cause.REJECTED)
        for first, last, state, count, _ in spans
        if state is RecordState.ARCHIVING
    )
