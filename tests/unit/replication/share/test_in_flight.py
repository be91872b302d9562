"""InFlight: sorted ranges that are split where a change ends, and the holes between them."""

from __future__ import annotations

import pytest

from tidelog.replication.share.in_flight import Group, InFlight, Span
from tidelog.replication.share.record_state import InFlightRange, RecordState


def flight(*ranges: tuple[int, int]) -> InFlight:
    made = InFlight()
    for first, last in ranges:
        made.add(Span(first, last, RecordState.AVAILABLE, 0, Group(first, last)))
    made.check()
    return made


def borders(made: InFlight) -> list[tuple[int, int]]:
    made.check()
    return [(span.first, span.last) for span in made]


def test_spans_stay_in_order_and_never_overlap() -> None:
    made = flight((20, 29), (0, 9))
    assert borders(made) == [(0, 9), (20, 29)]
    for first, last in ((5, 12), (10, 20), (29, 30)):
        with pytest.raises(AssertionError):
            made.add(Span(first, last, RecordState.AVAILABLE, 0, Group(first, last)))


def test_a_split_keeps_the_state_of_both_halves() -> None:
    made = flight((0, 9))
    made.lowest.acquire("ann", 100)
    made.split(4)
    assert [(span.member, span.deadline_ms, span.count) for span in made] == [("ann", 100, 1)] * 2
    assert borders(made) == [(0, 3), (4, 9)]
    made.split(4)
    made.split(50)
    assert borders(made) == [(0, 3), (4, 9)]


def test_ranges_are_found_and_cut() -> None:
    made = flight((0, 9), (20, 29))
    assert [span.first for span in made.within(9, 20)] == [0, 20]
    assert made.within(10, 19) == []
    assert [(span.first, span.last) for span in made.exactly(5, 22)] == [(5, 9), (20, 22)]
    assert [span.last for span in made.drop_below(21)] == [4, 9, 20]
    assert borders(made) == [(21, 22), (23, 29)]


def test_holes_are_found_in_order() -> None:
    made = flight((5, 9), (20, 29))
    assert made.hole_from(0, 40) == (0, 4)
    assert made.hole_from(5, 40) == (10, 19)
    assert made.hole_from(12, 15) == (12, 14)
    assert made.hole_from(20, 40) == (30, 39)
    assert made.hole_from(20, 30) is None
    assert made.hole_from(40, 30) is None


def test_one_offset_is_looked_up_with_its_holder() -> None:
    spans = InFlight()
    span = Span(5, 9, RecordState.AVAILABLE, 1, Group(5, 9))
    spans.add(span)
    span.acquire("m", 700)
    assert spans.at(7) == InFlightRange(5, 9, RecordState.ACQUIRED, 2, "m", 700, False)
    span.begin(object(), RecordState.ACKNOWLEDGED)
    assert spans.at(9) == InFlightRange(5, 9, RecordState.ACKNOWLEDGED, 2, None, 0, True)
    assert spans.at(4) is None
    assert spans.at(10) is None
    assert len(spans) == 1, "a look changes nothing"
