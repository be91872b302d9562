"""Acknowledgements: which are refused, and what they say about each offset."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acknowledging import refusal, runs, state_batches
from tidelog.replication.share.in_flight import Group, InFlight, Span
from tidelog.replication.share.record_state import Acknowledgement, AckType, RecordState, StateBatch

ACCEPT, RELEASE, RENEW = AckType.ACCEPT, AckType.RELEASE, AckType.RENEW


def held(*ranges: tuple[int, int]) -> InFlight:
    spans = InFlight()
    for first, last in ranges:
        span = Span(first, last, RecordState.AVAILABLE, 0, Group(first, last))
        span.acquire("ann", 100)
        spans.add(span)
    return spans


@pytest.mark.parametrize(
    ("first", "last", "member", "error"),
    [
        (10, 29, "ann", ErrorCode.NONE),
        (0, 5, "ann", ErrorCode.NONE),
        (5, 12, "ann", ErrorCode.NONE),
        (10, 19, "bob", ErrorCode.INVALID_RECORD_STATE),
        (8, 9, "ann", ErrorCode.INVALID_RECORD_STATE),
        (10, 30, "ann", ErrorCode.INVALID_REQUEST),
        (35, 36, "ann", ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_what_the_member_holds_is_taken(first: int, last: int, member: str, error: ErrorCode) -> None:
    spans = held((10, 19), (20, 29))
    assert refusal(spans, 7, member, Acknowledgement(first, last, (ACCEPT,)), renews=True) is error


def test_a_renewal_has_to_be_allowed() -> None:
    ack = Acknowledgement(10, 19, (RENEW,))
    assert refusal(held((10, 19)), 10, "ann", ack, renews=True) is ErrorCode.NONE
    assert refusal(held((10, 19)), 10, "ann", ack, renews=False) is ErrorCode.INVALID_RECORD_STATE


def test_equal_neighbours_are_one_part() -> None:
    types = (ACCEPT, ACCEPT, RELEASE, ACCEPT)
    assert list(runs(Acknowledgement(0, 3, types), 0)) == [(0, 1, ACCEPT), (2, 2, RELEASE), (3, 3, ACCEPT)]
    assert list(runs(Acknowledgement(0, 3, types), 1)) == [(1, 1, ACCEPT), (2, 2, RELEASE), (3, 3, ACCEPT)]
    assert list(runs(Acknowledgement(0, 3, (RELEASE,)), 2)) == [(2, 3, RELEASE)]
    assert list(runs(Acknowledgement(0, 3, (RELEASE,)), 4)) == []


def test_states_of_neighbours_are_persisted_together() -> None:
    spans = held((0, 4), (5, 9), (20, 29))
    assert state_batches(spans) == (
        StateBatch(0, 9, RecordState.ACQUIRED, 1),
        StateBatch(20, 29, RecordState.ACQUIRED, 1),
    )
