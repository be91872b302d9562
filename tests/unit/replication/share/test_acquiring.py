"""Acquisition: ranges and limits, and the records that are cut out of them."""

from __future__ import annotations

import pytest

from tidelog.replication.share.acquiring import Acquisition, Want, without
from tidelog.replication.share.in_flight import Group, InFlight, Span
from tidelog.replication.share.record_state import AcquiredRange, RecordState

LOG = [(0, 9), (10, 19)]


def suspect(count: int, size: int = 8, limit: int = 5) -> tuple[InFlight, Acquisition]:
    spans = InFlight()
    group = Group(0, size - 1)
    spans.add(Span(0, size - 1, RecordState.AVAILABLE, count, group))
    return spans, Acquisition(spans, LOG, Want("ann", 100, 100), 100, limit, 50)


@pytest.mark.parametrize(("count", "taken"), [(1, 8), (2, 8), (3, 4), (4, 1)])
def test_a_group_that_keeps_failing_is_cut(count: int, taken: int) -> None:
    spans, acquisition = suspect(count)
    acquisition.take_again(list(spans))
    assert acquisition.ranges == [AcquiredRange(0, taken - 1, count + 1)]
    assert acquisition.is_full is (count > 2)


def test_a_suspect_group_waits_when_others_are_delivered() -> None:
    spans, acquisition = suspect(0)
    spans.add(Span(10, 19, RecordState.AVAILABLE, 3, Group(10, 19)))
    acquisition.take_again(list(spans))
    assert acquisition.ranges == [AcquiredRange(0, 7, 1)]


def test_whole_batches_may_exceed_the_limit_and_exact_ones_do_not() -> None:
    spans = InFlight()
    loose = Acquisition(spans, LOG, Want("ann", 5, 100), 5, 5, 50)
    loose.take_new(0, 19)
    assert (loose.ranges, loose.count) == ([AcquiredRange(0, 9, 1)], 10)
    spans = InFlight()
    exact = Acquisition(spans, LOG, Want("ann", 5, 100, exact=True), 5, 5, 50)
    exact.take_new(0, 19)
    assert (exact.ranges, exact.count) == ([AcquiredRange(0, 4, 1)], 5)
    assert [(span.first, span.last, span.state) for span in spans] == [
        (0, 4, RecordState.ACQUIRED),
        (5, 9, RecordState.AVAILABLE),
    ]


def test_ranges_are_cut() -> None:
    ranges = [AcquiredRange(0, 9, 1), AcquiredRange(10, 19, 2)]
    assert without(ranges, []) == ranges
    assert without(ranges, [(8, 11), (15, 30)]) == [AcquiredRange(0, 7, 1), AcquiredRange(12, 14, 2)]
    assert without(ranges, [(0, 30)]) == []
