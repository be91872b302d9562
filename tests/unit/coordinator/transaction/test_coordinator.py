"""The machine: decisions become records, markers leave with them, time aborts and forgets."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from tests.unit.coordinator.transaction.driver import P0, P1, P2, Driver
from tidelog.coordinator.transaction.describing import describe
from tidelog.coordinator.transaction.metadata import LAST_EPOCH
from tidelog.coordinator.transaction.missing_markers import UNANSWERED_MS, MarkerAnswer
from tidelog.coordinator.transaction.records import TransactionRecord, encode_key
from tidelog.coordinator.transaction.settings import TransactionSettings
from tidelog.coordinator.transaction.state import TransactionState as S
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import NOTHING
from tidelog.records.builder import RecordData


def bumped(producer: Producer, by: int = 1) -> Producer:
    return Producer(producer.producer_id, producer.epoch + by)


# -- InitProducerId ----------------------------------------------------------------------------------------------------------


def test_a_new_transactional_id_gets_a_producer_id_and_every_further_question_an_epoch() -> None:
    driver = Driver()
    assert driver.producer() == Producer(1000, 0)
    assert driver.producer() == Producer(1000, 1)
    assert driver.producer("y") == Producer(1001, 0)
    driver.restart()
    assert driver.producer() == Producer(1000, 2)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "error"),
    [
        ("", 60_000, E.INVALID_REQUEST),
        ("x", 0, E.INVALID_TRANSACTION_TIMEOUT),
        ("x", -1, E.INVALID_TRANSACTION_TIMEOUT),
        ("x", 900_001, E.INVALID_TRANSACTION_TIMEOUT),
        ("x", 900_000, E.NONE),
    ],
)
def test_what_cannot_be_initialised_is_refused(transactional_id: str, timeout_ms: int, error: E) -> None:
    assert Driver().init(transactional_id, timeout_ms=timeout_ms).error is error


def test_without_producer_ids_one_asks_again_and_nothing_is_recorded() -> None:
    driver = Driver()
    driver.next_id = None
    assert driver.init().error is E.COORDINATOR_LOAD_IN_PROGRESS
    assert not driver.log


def test_taking_over_an_open_transaction_aborts_it_once_and_then_gives_the_epoch_after() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    assert driver.init().error is E.CONCURRENT_TRANSACTIONS
    assert driver.init().error is E.CONCURRENT_TRANSACTIONS, "one abort is enough"
    (request,) = driver.sent
    assert (request.committed, request.producer_epoch, request.partitions) == (False, 1, (P0,))
    driver.write_markers()
    assert driver.producer() == bumped(owner, 2)
    assert driver.add(owner, P0) is E.PRODUCER_FENCED


# -- the course of a transaction -----------------------------------------------------------------------------------------------


def test_a_transaction_of_version_2_is_committed_under_its_next_epoch() -> None:
    driver = Driver()
    owner = driver.producer()
    assert driver.add(owner, P0) is E.NONE
    assert driver.add(owner, P1) is E.NONE
    answer = driver.end(owner, commit=True)
    assert (answer.error, answer.producer_id, answer.producer_epoch) == (E.NONE, 1000, 1)
    (request,) = driver.sent
    assert (request.committed, request.producer_epoch, request.transaction_version) == (True, 1, 2)
    assert request.partitions == (P0, P1)
    assert driver.known().state is S.PREPARE_COMMIT
    driver.write_markers()
    assert driver.known().state is S.COMPLETE_COMMIT and not driver.known().partitions
    assert driver.add(bumped(owner), P0) is E.NONE


def test_a_transaction_of_an_older_client_keeps_its_epoch_beside_newer_ones() -> None:
    driver = Driver()
    old, new = driver.producer("old"), driver.producer("new")
    driver.add(old, P0, version=0, transactional_id="old")
    driver.add(new, P0, transactional_id="new")
    assert driver.end(old, commit=True, version=0, transactional_id="old").producer_epoch == 0
    assert driver.end(new, commit=True, transactional_id="new").producer_epoch == 1
    assert [(request.producer_epoch, request.transaction_version) for request in driver.sent] == [(0, 0), (1, 2)]
    driver.write_markers()
    assert driver.add(old, P1, version=0, transactional_id="old") is E.NONE


def test_the_transaction_is_complete_only_after_the_last_marker() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0, P1)
    driver.end(owner, commit=False)
    request = driver.sent.pop()
    assert driver.machine.missing_markers == 2
    driver.answer(request, P0)
    assert driver.known().state is S.PREPARE_ABORT and driver.machine.missing_markers == 1
    driver.answer(request, P1, E.NOT_LEADER_OR_FOLLOWER)
    assert driver.known().state is S.PREPARE_ABORT
    driver.advance(20)
    assert driver.sent[0].partitions == (P1,)
    driver.write_markers()
    assert driver.known().state is S.COMPLETE_ABORT


def test_a_marker_without_an_answer_is_sent_again() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    driver.end(owner, commit=True)
    driver.sent.clear()
    driver.advance(UNANSWERED_MS)
    assert [request.partitions for request in driver.sent] == [(P0,)]
    driver.write_markers()
    assert driver.known().state is S.COMPLETE_COMMIT


def test_an_answer_to_a_former_decision_completes_nothing() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0, version=0)
    driver.end(owner, commit=True, version=0)
    (first,) = driver.sent
    driver.write_markers()
    driver.add(owner, P0, version=0)
    driver.end(owner, commit=False, version=0)
    driver.answer(first, P0)
    assert driver.known().state is S.PREPARE_ABORT
    assert driver.machine.marker_answered(MarkerAnswer("nobody", 1, P0, E.NONE), driver.now) is NOTHING


def test_a_repeated_endtxn_is_answered_with_the_same_epoch_also_by_the_next_coordinator() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    first = driver.end(owner, commit=True)
    assert driver.end(owner, commit=True).error is E.CONCURRENT_TRANSACTIONS, "until it is complete"
    driver.write_markers()
    driver.restart()
    assert driver.end(owner, commit=True) == first
    assert driver.end(owner, commit=False).error is E.INVALID_TXN_STATE


def test_markers_of_one_transaction_are_older_than_the_batches_of_the_next() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    driver.end(owner, commit=True)
    (late,) = driver.sent
    driver.write_markers()
    following = bumped(owner)
    assert driver.add(following, P0) is E.NONE
    assert owner.epoch < late.producer_epoch == following.epoch, "equal is late: a partition with an open transaction refuses it"
    driver.end(following, commit=False)
    assert driver.sent[0].producer_epoch == following.epoch + 1


def test_an_abort_of_nothing_moves_the_epoch_without_a_marker() -> None:
    driver = Driver()
    owner = driver.producer()
    answer = driver.end(owner, commit=False)
    assert (answer.error, answer.producer_epoch, driver.sent) == (E.NONE, 1, [])
    assert driver.known().state is S.COMPLETE_ABORT


def test_a_producer_that_used_up_its_epochs_is_answered_with_its_next_id() -> None:
    driver = Driver()
    owner = driver.producer()
    worn = dataclasses.replace(driver.known(), producer_epoch=LAST_EPOCH - 1)
    driver.machine.replay(TransactionRecord("x", worn), driver.now)
    driver.add(Producer(owner.producer_id, LAST_EPOCH - 1), P0)
    answer = driver.end(Producer(owner.producer_id, LAST_EPOCH - 1), commit=True)
    assert (answer.producer_id, answer.producer_epoch) == (1001, 0)
    assert [(request.producer_id, request.producer_epoch) for request in driver.sent] == [(1000, LAST_EPOCH)]
    driver.write_markers()
    assert driver.add(Producer(1001, 0), P0) is E.NONE


def test_requests_without_a_transactional_id_are_refused() -> None:
    driver = Driver()
    assert driver.add(Producer(1, 0), P0, transactional_id="") is E.INVALID_REQUEST
    assert driver.end(Producer(1, 0), commit=True, transactional_id="").error is E.INVALID_REQUEST
    token = driver.token()
    driver.run(driver.machine.verify_partitions(token, "", Producer(1, 0), [P0]))
    assert driver.answers[token] == {P0: E.INVALID_REQUEST}


def test_a_partition_that_asks_hears_whether_it_was_added() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0, version=0)
    assert driver.verify(owner, P0, P1) == [E.NONE, E.TRANSACTION_ABORTABLE]


# -- waiting for the transaction before ----------------------------------------------------------------------------------------


def test_who_has_patience_joins_when_the_transaction_before_is_complete() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    driver.end(owner, commit=True)
    first, second = driver.wait_to_add(bumped(owner), P1), driver.wait_to_add(bumped(owner), P2)
    assert not {first, second} & set(driver.answers)
    driver.write_markers()
    assert driver.answers[first] is driver.answers[second] is E.NONE
    assert list(driver.known().partitions) == [P1, P2] and driver.known().state is S.ONGOING
    driver.advance(1_000)


def test_whoever_waits_is_judged_by_what_came_of_it() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    driver.end(owner, commit=True)
    late = driver.wait_to_add(owner, P1)
    driver.write_markers()
    assert driver.answers[late] is E.PRODUCER_FENCED


def test_patience_ends() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    driver.end(owner, commit=True)
    short, long = driver.wait_to_add(bumped(owner), P1, patience_ms=50), driver.wait_to_add(bumped(owner), P1, patience_ms=90)
    driver.advance(50)
    assert driver.answers[short] is E.CONCURRENT_TRANSACTIONS and long not in driver.answers
    driver.advance(40)
    assert driver.answers[long] is E.CONCURRENT_TRANSACTIONS
    driver.write_markers()
    assert driver.known().state is S.COMPLETE_COMMIT


# -- time --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server_version", [0, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_epoch_is_fenced(server_version: int) -> None:
    driver = Driver(server_version=server_version)
    owner = driver.producer()
    driver.add(owner, P0, version=server_version)
    driver.advance(60_000)
    assert driver.known().state is S.ONGOING
    driver.advance(10_001)
    (request,) = driver.sent
    assert (request.committed, request.producer_epoch, request.transaction_version) == (False, 1, server_version)
    assert driver.add(owner, P1, version=server_version) is E.PRODUCER_FENCED
    driver.write_markers()
    assert driver.add(owner, P1, version=server_version) is E.PRODUCER_FENCED
    wanted = E.INVALID_TXN_STATE if server_version == 2 else E.PRODUCER_FENCED
    assert driver.end(owner, commit=True, version=server_version).error is wanted
    assert driver.producer() == bumped(owner, 2)


def test_an_id_that_nobody_uses_is_forgotten_but_never_with_an_open_transaction() -> None:
    settings = TransactionSettings(id_expiration_ms=100_000, id_expiration_check_interval_ms=10_000, max_timeout_ms=10**9)
    driver = Driver(settings=settings)
    driver.producer("idle")
    token = driver.init("busy", timeout_ms=10**8)
    driver.add(Producer(token.producer_id, 0), P0, transactional_id="busy")
    driver.advance(99_000)
    assert list(driver.machine.transactions) == ["idle", "busy"]
    driver.advance(21_000)
    assert list(driver.machine.transactions) == ["busy"]
    assert driver.log[-1].key == encode_key("idle") and driver.log[-1].value is None
    driver.restart()
    assert list(driver.machine.transactions) == ["busy"]


# -- the log -----------------------------------------------------------------------------------------------------------------


def test_after_a_restart_what_was_decided_is_carried_out() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0, P1)
    driver.end(owner, commit=True)
    driver.restart()
    assert driver.known().state is S.PREPARE_COMMIT
    driver.advance(0)
    (request,) = driver.sent
    assert (request.committed, request.producer_epoch, request.partitions) == (True, 1, (P0, P1))
    driver.write_markers()
    assert driver.known().state is S.COMPLETE_COMMIT


def test_a_decision_without_partitions_that_a_crash_left_is_completed() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.end(owner, commit=False)
    del driver.log[-1]
    driver.restart()
    driver.advance(0)
    assert driver.known().state is S.COMPLETE_ABORT and not driver.sent


def test_a_transaction_that_began_by_a_clock_that_goes_ahead_is_aborted_in_its_time_all_the_same() -> None:
    driver = Driver()
    producer = driver.producer()
    driver.now += 3 * 3_600_000
    assert driver.add(producer, P0) is E.NONE
    driver.now -= 3 * 3_600_000
    driver.restart()
    driver.advance(59_000)
    assert not driver.known().ending
    driver.advance(30_000)
    assert driver.known().ending


def test_an_open_transaction_outlives_a_restart() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    driver.restart()
    assert driver.add(owner, P1) is E.NONE
    assert driver.end(owner, commit=True).error is E.NONE


def test_records_of_other_kinds_are_passed_over() -> None:
    driver = Driver()
    driver.producer()
    driver.log.append(RecordData(b"\0\7other", b"value", 1))
    driver.log.append(RecordData(None, b"value", 1))
    driver.restart()
    assert list(driver.machine.transactions) == ["x"]


def test_a_record_that_no_decision_leads_to_is_a_bug() -> None:
    driver = Driver()
    owner = driver.producer()
    driver.add(owner, P0)
    with pytest.raises(AssertionError, match="cannot become"):
        driver.machine.replay(TransactionRecord("x", None), driver.now)


# -- logs that others wrote --------------------------------------------------------------------------------------------------


def value_v0(state: int, *, producer_id: int = 5, epoch: int = 0) -> bytes:
    return b"\x00\x00" + struct.pack(">qhibiqq", producer_id, epoch, 1000, state, -1, 0, 0)


@pytest.mark.parametrize("key", [b"\x00\x00\x00\x50ab", b"\x00\x00\x00\x02\xff\xfe", b"\x00\x00", b"", b"\x00"])
def test_a_key_that_cannot_be_read_is_passed_over(key: bytes) -> None:
    driver = Driver()
    producer = driver.producer()
    driver.log.append(RecordData(key, b"x", 0))
    driver.restart()
    assert driver.add(producer, P0) is E.NONE


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00\x09",
        b"\x00\x01\x00",
        value_v0(99),
        value_v0(int(S.PREPARE_EPOCH_FENCE)),
        value_v0(int(S.ONGOING), producer_id=-1),
        value_v0(int(S.EMPTY), epoch=-1),
    ],
)
def test_an_id_whose_record_cannot_be_read_is_not_served_and_all_others_are(value: bytes) -> None:
    """Nothing is guessed: what it said may have been that an open transaction is committed."""
    driver = Driver()
    producer, other = driver.producer(), driver.producer("y")
    assert driver.add(producer, P0) is E.NONE
    driver.log.append(RecordData(encode_key("x"), value, 0))
    driver.restart()
    assert driver.init().error is E.COORDINATOR_NOT_AVAILABLE
    assert driver.add(producer, P1) is E.COORDINATOR_NOT_AVAILABLE
    assert driver.verify(producer, P0) == [E.COORDINATOR_NOT_AVAILABLE]
    assert driver.end(producer, commit=True).error is E.COORDINATOR_NOT_AVAILABLE
    assert describe(driver.machine, "x").error_code == E.COORDINATOR_NOT_AVAILABLE
    driver.advance(120_000)
    assert driver.sent == [] and driver.add(other, P0, transactional_id="y") is E.NONE
    driver.log.append(RecordData(encode_key("x"), None, 0))
    driver.restart()
    assert driver.init().error is E.NONE


def test_a_transaction_that_no_record_could_hold_is_refused_and_what_was_begun_can_end() -> None:
    driver = Driver(settings=TransactionSettings(max_record_bytes=2_000))
    producer = driver.producer()
    names = [TopicPartition("n" * 200 + str(number), 0) for number in range(20)]
    joined = 0
    while driver.add(producer, names[joined]) is E.NONE:
        joined += 1
    assert 5 <= joined < 10
    assert driver.add(producer, names[joined]) is E.UNKNOWN_SERVER_ERROR
    assert driver.end(producer, commit=True).error is E.NONE
    assert max(len(record.key or b"") + len(record.value or b"") for record in driver.log) < 2_000
    assert driver.init("i" * 3_000).error is E.UNKNOWN_SERVER_ERROR
