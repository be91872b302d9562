"""What an acknowledgement means for the records in flight: whether it is refused, its parts, and the states to persist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.model.errors import ErrorCode
from tidelog.replication.share.in_flight import InFlight, Span
from tidelog.replication.share.record_state import Acknowledgement, AckType, RecordState, StateBatch


def refusal(spans: InFlight, start: int, member: str, ack: Acknowledgement, *, renews: bool) -> ErrorCode:
    """INVALID_RECORD_STATE unless the member holds all of its records from ``start`` on; INVALID_REQUEST when it reaches beyond
    what was delivered. ``renews``: whether members may renew locks."""
    if ack.last < start:
        return ErrorCode.NONE
    if not renews and AckType.RENEW in ack.types:
        return ErrorCode.INVALID_RECORD_STATE
    if not len(spans) or start <= ack.first < spans.lowest.first:
        return ErrorCode.INVALID_RECORD_STATE
    found = spans.within(max(ack.first, start), ack.last)
    if not found or ack.last > found[-1].last:
        return ErrorCode.INVALID_REQUEST
    if all(span.state is RecordState.ACQUIRED and span.member == member for span in found):
        return ErrorCode.NONE
    return ErrorCode.INVALID_RECORD_STATE


def refused(spans: InFlight, start: int, member: str, acks: Sequence[Acknowledgement], *, renews: bool) -> ErrorCode:
    """Why ``acks`` of one partition are refused, all of them; NONE if they are not. INVALID_REQUEST when they are not in order or
    have another number of types than one, or one for each offset."""
    above = -1
    for ack in acks:
        if ack.first < above or ack.last < ack.first or len(ack.types) not in {1, ack.last - ack.first + 1}:
            return ErrorCode.INVALID_REQUEST
        error = refusal(spans, start, member, ack, renews=renews)
        if ack.first == above >= start:
            error = error or ErrorCode.INVALID_RECORD_STATE
        above = ack.last
        if error is not ErrorCode.NONE:
            return error
    return ErrorCode.NONE


def runs(ack: Acknowledgement, start: int) -> Iterable[tuple[int, int, AckType]]:
    """The parts of an acknowledgement with one type each, from offset ``start`` on: first and last offset, and the type."""
    first = max(ack.first, start)
    if len(ack.types) == 1:
        if first <= ack.last:
            yield first, ack.last, AckType(ack.types[0])
        return
    while first <= ack.last:
        kind, last = ack.types[first - ack.first], first
        while last < ack.last and ack.types[last + 1 - ack.first] == kind:
            last += 1
        yield first, last, AckType(kind)
        first = last + 1


def state_batches(changed: Iterable[Span]) -> tuple[StateBatch, ...]:
    """The states of these spans, which are in order; equal neighbours are joined."""
    batches: list[StateBatch] = []
    for span in changed:
        last = batches[-1] if batches else None
        if last is not None and (last.last + 1, last.state, last.delivery_count) == (span.first, span.state, span.count):
            batches[-1] = last._replace(last=span.last)
        else:
            batches.append(StateBatch(span.first, span.last, span.state, span.count))
    return tuple(batches)
