from __future__ import annotations

import dataclasses

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1
from tidelog.coordinator.transaction.metadata import LAST_EPOCH, TransactionMetadata, new_transactional_id
from tidelog.coordinator.transaction.state import TransactionState


def begun(version: int = 2, epoch: int = 3) -> TransactionMetadata:
    empty = dataclasses.replace(new_transactional_id("x", 7, 60_000, 100), producer_epoch=epoch - 1)
    return empty.with_next_epoch(60_000, last_epoch=-1, now_ms=110).with_partitions([P0], client_version=version, now_ms=120)


def test_the_first_bump_gives_epoch_zero_and_no_transaction() -> None:
    known = new_transactional_id("x", 7, 60_000, 100).with_next_epoch(5_000, last_epoch=-1, now_ms=110)
    assert (known.producer_id, known.producer_epoch, known.previous_producer_id) == (7, 0, 7)
    assert (known.state, known.start_ms, known.timeout_ms, known.last_update_ms) == (TransactionState.EMPTY, -1, 5_000, 110)


def test_a_transaction_begins_with_its_first_partition_and_keeps_that_time() -> None:
    known = begun().with_partitions([P1, P0], client_version=2, now_ms=150)
    assert list(known.partitions) == [P0, P1]
    assert (known.start_ms, known.last_update_ms) == (120, 150)


def test_a_decision_moves_the_epoch_since_version_2_and_not_before() -> None:
    bumped = begun().prepared(commit=True, client_version=2, now_ms=200)
    assert (bumped.producer_epoch, bumped.last_producer_epoch, bumped.start_ms) == (4, 3, 120)
    old = begun(0).prepared(commit=False, client_version=0, now_ms=200)
    assert (old.producer_epoch, old.state) == (3, TransactionState.PREPARE_ABORT)


def test_a_producer_without_epochs_goes_on_under_its_next_id() -> None:
    known = begun(epoch=LAST_EPOCH - 1).prepared(commit=True, client_version=2, now_ms=200, next_producer_id=8)
    assert (known.producer_id, known.producer_epoch) == (7, LAST_EPOCH)
    done = known.completed(210)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id, done.next_producer_id) == (8, 0, 7, -1)


def test_an_abort_of_nothing_begins_and_ends_at_once() -> None:
    empty = new_transactional_id("x", 7, 60_000, 100).with_next_epoch(60_000, last_epoch=-1, now_ms=110)
    assert empty.prepared(commit=False, client_version=2, now_ms=120).start_ms == 120


def test_an_open_transaction_is_over_time_only_after_its_timeout() -> None:
    assert not begun().timed_out(120 + 60_000)
    assert begun().timed_out(120 + 60_001)
    assert not begun().prepared(commit=True, client_version=2, now_ms=130).timed_out(1 << 40)


def test_a_move_that_no_table_knows_is_a_bug_and_stops() -> None:
    decided = begun().prepared(commit=True, client_version=2, now_ms=200)
    with pytest.raises(AssertionError, match="no legal move"):
        decided.with_partitions([P0], client_version=2, now_ms=210)
    with pytest.raises(AssertionError, match="no legal move"):
        decided.prepared(commit=False, client_version=2, now_ms=210)
