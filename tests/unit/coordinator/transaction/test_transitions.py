"""What each request may do, as Apache Kafka 4.3.1 answers it (asked side by side)."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1
from tidelog.coordinator.transaction import transitions
from tidelog.coordinator.transaction.metadata import LAST_EPOCH, TransactionMetadata, new_transactional_id
from tidelog.coordinator.transaction.state import TransactionState as S
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E

OWNER = Producer(7, 5)
RETRY = Producer(7, 4)


def at(state: S, epoch: int = 5, **changes: object) -> TransactionMetadata:
    base = dataclasses.replace(new_transactional_id("x", 7, 60_000, 100), producer_epoch=epoch, previous_producer_id=7)
    partitions = {P0: None} if state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT) else {}
    return dataclasses.replace(base, state=state, partitions=partitions, **changes)  # type: ignore[arg-type]


def no_id() -> int | None:
    return None


def new_id() -> int | None:
    return 99


def decided_by_2(known: TransactionMetadata) -> TransactionMetadata:
    return dataclasses.replace(known, client_version=2)


def end(known: TransactionMetadata | None, producer: Producer, *, commit: bool, version: int = 2) -> object:
    decided = transitions.end(known, producer, commit=commit, client_version=version, new_id=new_id, now_ms=200)
    return decided if isinstance(decided, E) else (decided.state, decided.producer_epoch)


def init(known: TransactionMetadata, expected: Producer | None = None, server_version: int = 2) -> object:
    decided = transitions.init(known, expected, 60_000, new_id=new_id, server_version=server_version, now_ms=200)
    return decided if isinstance(decided, E) else (decided.state, decided.producer_id, decided.producer_epoch)


# -- EndTxn since transaction.version 2 --------------------------------------------------------------------------------------

BUMPED_ABORT = (S.PREPARE_ABORT, 6)
BUMPED_COMMIT = (S.PREPARE_COMMIT, 6)


@pytest.mark.parametrize(
    ("state", "retry", "abort", "commit"),
    [
        (S.EMPTY, True, E.PRODUCER_FENCED, E.PRODUCER_FENCED),
        (S.EMPTY, False, BUMPED_ABORT, E.INVALID_TXN_STATE),
        (S.ONGOING, True, E.PRODUCER_FENCED, E.PRODUCER_FENCED),
        (S.ONGOING, False, BUMPED_ABORT, BUMPED_COMMIT),
        (S.PREPARE_COMMIT, True, E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, False, E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, True, E.CONCURRENT_TRANSACTIONS, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, False, E.CONCURRENT_TRANSACTIONS, E.CONCURRENT_TRANSACTIONS),
        (S.COMPLETE_COMMIT, True, E.INVALID_TXN_STATE, E.NONE),
        (S.COMPLETE_COMMIT, False, BUMPED_ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, True, E.NONE, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, False, BUMPED_ABORT, E.INVALID_TXN_STATE),
    ],
)
def test_an_epoch_tells_a_retry_of_endtxn_from_the_next_transaction(state: S, retry: bool, abort: object, commit: object) -> None:
    producer = RETRY if retry else OWNER
    known = decided_by_2(at(state))
    assert end(known, producer, commit=False) == abort
    assert end(known, producer, commit=True) == commit


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.COMPLETE_COMMIT])
def test_a_fenced_producer_does_not_take_an_older_clients_commit_for_its_own(state: S) -> None:
    """Found by tests/property/test_transactions.py; Apache Kafka 4.3.1 answers NONE, with the other one's epoch."""
    assert end(at(state), RETRY, commit=True) is E.PRODUCER_FENCED


@pytest.mark.parametrize("epoch", [3, 6])
@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_other_epochs_are_fenced(state: S, epoch: int) -> None:
    assert end(at(state), Producer(7, epoch), commit=False) is E.PRODUCER_FENCED


def test_a_stranger_is_told_that_the_id_is_not_its_own() -> None:
    for version in (0, 2):
        assert end(None, OWNER, commit=True, version=version) is E.INVALID_PRODUCER_ID_MAPPING
        assert end(at(S.ONGOING), Producer(8, 5), commit=True, version=version) is E.INVALID_PRODUCER_ID_MAPPING


def test_a_retry_across_an_overflow_of_the_epoch_is_known_by_the_id_before() -> None:
    ongoing = at(S.ONGOING, LAST_EPOCH - 1)
    decided = transitions.end(ongoing, Producer(7, LAST_EPOCH - 1), commit=True, client_version=2, new_id=new_id, now_ms=200)
    assert isinstance(decided, TransactionMetadata)
    assert (decided.producer_epoch, decided.next_producer_id) == (LAST_EPOCH, 99)
    done = decided.completed(210)
    assert (done.producer_id, done.producer_epoch) == (99, 0)
    assert end(done, Producer(7, LAST_EPOCH - 1), commit=True) is E.NONE
    assert end(done, Producer(7, LAST_EPOCH - 1), commit=False) is E.INVALID_TXN_STATE
    assert end(done, Producer(7, LAST_EPOCH - 2), commit=True) is E.INVALID_PRODUCER_ID_MAPPING


def test_without_an_id_at_hand_an_overflow_waits() -> None:
    decided = transitions.end(
        at(S.ONGOING, LAST_EPOCH - 1), Producer(7, LAST_EPOCH - 1), commit=True, client_version=2, new_id=no_id, now_ms=200
    )
    assert decided is E.COORDINATOR_LOAD_IN_PROGRESS


def test_the_last_epoch_belongs_to_nobody_whoever_claims_it() -> None:
    claimed = Producer(7, LAST_EPOCH)
    for state in (S.EMPTY, S.COMPLETE_ABORT):
        assert end(at(state, LAST_EPOCH), claimed, commit=False) is E.PRODUCER_FENCED
        added = transitions.add_partitions(at(state, LAST_EPOCH), claimed, [P0], client_version=2, now_ms=200)
        assert added is E.PRODUCER_FENCED


# -- EndTxn before ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "abort", "commit"),
    [
        (S.EMPTY, E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
        (S.ONGOING, (S.PREPARE_ABORT, 5), (S.PREPARE_COMMIT, 5)),
        (S.PREPARE_COMMIT, E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, E.CONCURRENT_TRANSACTIONS, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, E.INVALID_TXN_STATE, E.NONE),
        (S.COMPLETE_ABORT, E.NONE, E.INVALID_TXN_STATE),
    ],
)
def test_before_version_2_the_epoch_stays_and_only_the_same_one_counts(state: S, abort: object, commit: object) -> None:
    assert end(at(state), OWNER, commit=False, version=0) == abort
    assert end(at(state), OWNER, commit=True, version=0) == commit
    for other in (4, 6):
        assert end(at(state), Producer(7, other), commit=True, version=0) is E.PRODUCER_FENCED


# -- InitProducerId ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_whoever_comes_without_a_past_gets_the_next_epoch(state: S) -> None:
    assert init(at(state)) == (S.EMPTY, 7, 6)


@pytest.mark.parametrize("server_version", [0, 1, 2])
def test_an_open_transaction_is_aborted_first_and_the_epoch_moves_once_for_it(server_version: int) -> None:
    assert init(at(S.ONGOING), server_version=server_version) == (S.PREPARE_ABORT, 7, 6)
    assert init(at(S.ONGOING), OWNER, server_version=server_version) == (S.PREPARE_ABORT, 7, 6)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_until_markers_are_written_one_asks_again(state: S) -> None:
    assert init(at(state)) is E.CONCURRENT_TRANSACTIONS


def test_a_producer_may_go_on_with_the_epoch_it_has_and_ask_twice() -> None:
    assert init(at(S.COMPLETE_ABORT), OWNER) == (S.EMPTY, 7, 6)
    bumped = transitions.init(at(S.COMPLETE_ABORT), OWNER, 60_000, new_id=new_id, server_version=2, now_ms=200)
    assert isinstance(bumped, TransactionMetadata)
    assert init(bumped, OWNER) == (S.EMPTY, 7, 6), "the answer was lost"
    assert init(bumped, RETRY) is E.PRODUCER_FENCED
    taken_over = transitions.init(bumped, None, 60_000, new_id=new_id, server_version=2, now_ms=200)
    assert isinstance(taken_over, TransactionMetadata)
    assert init(taken_over, OWNER) is E.PRODUCER_FENCED, "somebody else asked since"


def test_another_producer_id_is_fenced() -> None:
    for state in (S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.COMPLETE_COMMIT):
        assert init(at(state), Producer(8, 5)) is E.PRODUCER_FENCED


def test_used_up_epochs_give_a_new_id() -> None:
    used_up = at(S.COMPLETE_COMMIT, LAST_EPOCH - 1)
    assert init(used_up) == (S.EMPTY, 99, 0)
    rotated = transitions.init(used_up, Producer(7, LAST_EPOCH - 1), 60_000, new_id=new_id, server_version=2, now_ms=200)
    assert isinstance(rotated, TransactionMetadata) and rotated.previous_producer_id == 7
    assert init(rotated, Producer(7, LAST_EPOCH - 1)) == (S.EMPTY, 99, 0), "the answer was lost"
    assert init(used_up, Producer(7, 5)) is E.PRODUCER_FENCED
    waiting = transitions.init(used_up, None, 60_000, new_id=no_id, server_version=2, now_ms=200)
    assert waiting is E.COORDINATOR_LOAD_IN_PROGRESS


def test_a_fence_that_uses_up_the_last_epoch_is_followed_by_a_new_id() -> None:
    fenced = transitions.init(at(S.ONGOING, LAST_EPOCH - 1), None, 60_000, new_id=new_id, server_version=2, now_ms=200)
    assert isinstance(fenced, TransactionMetadata) and fenced.producer_epoch == LAST_EPOCH
    assert init(fenced.completed(210)) == (S.EMPTY, 99, 0)


# -- AddPartitionsToTxn --------------------------------------------------------------------------------------------------------


def test_partitions_join_only_a_transaction_that_may_still_grow() -> None:
    def add(known: TransactionMetadata | None, producer: Producer = OWNER) -> object:
        decided = transitions.add_partitions(known, producer, [P0], client_version=2, now_ms=200)
        return decided if isinstance(decided, E) else decided.state

    assert [add(at(state)) for state in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)] == [S.ONGOING] * 3
    assert add(at(S.ONGOING)) is E.NONE, "nothing new"
    assert [add(at(state)) for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT)] == [E.CONCURRENT_TRANSACTIONS] * 2
    assert add(None) is E.INVALID_PRODUCER_ID_MAPPING
    assert add(at(S.ONGOING), Producer(8, 5)) is E.INVALID_PRODUCER_ID_MAPPING
    assert [add(at(S.ONGOING), Producer(7, epoch)) for epoch in (4, 6)] == [E.PRODUCER_FENCED] * 2


def test_who_only_asks_hears_which_partitions_belong_to_the_transaction() -> None:
    known = at(S.ONGOING)
    assert transitions.verify_partitions(known, OWNER, [P0, P1]) == {P0: E.NONE, P1: E.TRANSACTION_ABORTABLE}
    assert transitions.verify_partitions(at(S.COMPLETE_COMMIT), OWNER, [P0]) == {P0: E.TRANSACTION_ABORTABLE}
    assert transitions.verify_partitions(at(S.PREPARE_COMMIT), OWNER, [P0]) == {P0: E.CONCURRENT_TRANSACTIONS}
    assert transitions.verify_partitions(known, RETRY, [P0]) == {P0: E.PRODUCER_FENCED}
    assert transitions.verify_partitions(None, OWNER, [P0, P1]) == dict.fromkeys((P0, P1), E.INVALID_PRODUCER_ID_MAPPING)
