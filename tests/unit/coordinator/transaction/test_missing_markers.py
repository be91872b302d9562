from __future__ import annotations

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1, P2, Driver
from tidelog.coordinator.transaction.metadata import new_transactional_id
from tidelog.coordinator.transaction.missing_markers import (
    FIRST_PAUSE_MS,
    LONGEST_PAUSE_MS,
    UNANSWERED_MS,
    MarkerAnswer,
    MissingMarkers,
    Outstanding,
    write_markers,
)
from tidelog.coordinator.transaction.settings import NEVER_MS
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.model.errors import ErrorCode as E


def test_a_marker_says_how_the_transaction_was_decided_and_by_which_rules() -> None:
    empty = new_transactional_id("x", 7, 60_000, 100).with_next_epoch(60_000, last_epoch=-1, now_ms=100)
    ongoing = empty.with_partitions([P0, P1], client_version=2, now_ms=100)
    request = write_markers(ongoing.prepared(commit=True, client_version=2, now_ms=110), 4, [P1])
    assert (request.producer_id, request.producer_epoch, request.committed, request.transaction_version) == (7, 1, True, 2)
    assert (request.round, request.partitions) == (4, (P1,))
    assert not write_markers(ongoing.prepared(commit=False, client_version=0, now_ms=110), 4, [P1]).committed
    with pytest.raises(AssertionError, match="not decided"):
        write_markers(ongoing, 4, [P0])


def test_a_partition_is_waited_for_until_it_has_its_marker_or_is_gone() -> None:
    outstanding = Outstanding(1, [P0, P1], 500)
    outstanding.answered(P0, E.NONE, 100)
    outstanding.answered(P2, E.NONE, 100)
    assert list(outstanding.due) == [P1]
    outstanding.answered(P1, E.UNKNOWN_TOPIC_ID, 100)
    assert not outstanding.due


def test_a_partition_that_refuses_is_asked_again_at_growing_distances_for_ever() -> None:
    outstanding = Outstanding(1, [P0, P1], 10**9)
    now, pauses = 0, []
    for _ in range(10):
        outstanding.answered(P0, E.NOT_LEADER_OR_FOLLOWER, now)
        pauses.append(outstanding.next_due() - now)
        now = outstanding.next_due()
        assert outstanding.take_due(now) == [P0]
    assert pauses[:3] == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS]
    assert pauses[-1] == LONGEST_PAUSE_MS


def test_an_answer_says_when_its_partition_is_asked_again_so_that_nobody_looks_at_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transaction over 16,000 partitions stopped everything for seconds."""
    outstanding = Outstanding(1, [P0, P1], 500)
    assert outstanding.answered(P0, E.NOT_LEADER_OR_FOLLOWER, 100) == 100 + FIRST_PAUSE_MS
    assert outstanding.answered(P0, E.NONE, 100) is None and outstanding.answered(P2, E.NOT_LEADER_OR_FOLLOWER, 100) is None
    driver = Driver()
    producer = driver.producer()
    driver.add(producer, P0, P1, P2)
    driver.end(producer, commit=True)
    (request,) = driver.sent
    monkeypatch.setattr(Outstanding, "next_due", lambda self: pytest.fail("looked at every partition"))
    driver.answer(request, P0)
    driver.answer(request, P1, E.NOT_LEADER_OR_FOLLOWER)
    assert driver.machine.next_deadline() == driver.now + FIRST_PAUSE_MS
    driver.answer(request, P1)
    driver.answer(request, P2)
    assert driver.known().state is TransactionState.COMPLETE_COMMIT


def test_a_partition_that_does_not_answer_is_asked_again() -> None:
    outstanding = Outstanding(1, [P0], 0)
    assert outstanding.take_due(0) == [P0]
    assert outstanding.take_due(UNANSWERED_MS - 1) == []
    assert outstanding.take_due(UNANSWERED_MS) == [P0]


def test_markers_are_missing_until_each_partition_has_answered_this_round() -> None:
    missing = MissingMarkers()
    earlier, round_ = missing.new_round(), missing.new_round()
    missing.expect("x", round_, [P0, P1], 500)
    missing.expect("y", missing.new_round(), [P2], 500)
    assert missing.count == 3 and missing.partitions("x") == {P0, P1} and missing.partitions("z") is None
    assert not missing.answered(MarkerAnswer("x", earlier, P0, E.NONE), 100)
    assert not missing.answered(MarkerAnswer("z", round_, P0, E.NONE), 100)
    assert missing.count == 3
    assert not missing.answered(MarkerAnswer("x", round_, P0, E.NONE), 100)
    assert missing.answered(MarkerAnswer("x", round_, P1, E.NONE), 100)
    missing.forget("x")
    assert missing.transactional_ids == {"y"}


def test_a_completion_that_is_not_recorded_yet_is_due_with_the_partitions_of_others() -> None:
    missing = MissingMarkers()
    assert missing.next_ms == NEVER_MS and missing.take_due(10**9) == []
    for transactional_id, round_, partition in (("x", 1, P0), ("y", 2, P1)):
        missing.expect(transactional_id, round_, [partition], 500)
    assert missing.next_ms == 500
    missing.answered(MarkerAnswer("x", 1, P0, E.NONE), 100)
    assert missing.take_due(500) == [("x", 1, []), ("y", 2, [P1])]
    assert missing.next_ms == 500 + UNANSWERED_MS
    missing.answered(MarkerAnswer("y", 2, P1, E.NOT_LEADER_OR_FOLLOWER), 600)
    assert missing.next_ms == 600 + FIRST_PAUSE_MS
    missing.clear()
    assert (missing.count, missing.next_ms) == (0, NEVER_MS)
