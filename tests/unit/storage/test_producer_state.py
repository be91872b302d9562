"""Idempotence and open transactions, rule by rule (KIP-98)."""

from pathlib import Path

import pytest

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import BatchHeader
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.producer_state import (
    BatchMetadata,
    CorruptSnapshot,
    ProducerEntry,
    ProducerStateManager,
    decode_snapshot,
    encode_snapshot,
)
from tidelog.storage.verification_guard import NOT_REQUIRED, Verification

SNAPSHOT = Path("tests/golden/log/tp0/00000000000000001759.snapshot")
LAST = 2**31 - 1


def header(
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    offset: int = 0,
    producer: int = 7,
    transactional: bool = False,
    timestamp: int = 1000,
) -> BatchHeader:
    attributes = 0x10 if transactional else 0
    return BatchHeader(0, offset, 100, 0, 2, 0, attributes, count - 1, 0, timestamp, producer, epoch, sequence, count)


def marker(offset: int, *, epoch: int = 0, producer: int = 7) -> BatchHeader:
    return BatchHeader(0, offset, 78, 0, 2, 0, 0x30, 0, 0, 2000, producer, epoch, -1, 1)


def after(*batches: BatchHeader) -> ProducerStateManager:
    state = ProducerStateManager()
    for batch in batches:
        assert state.check(batch) is ErrorCode.NONE
        state.update(batch)
    return state


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    assert ProducerStateManager().check(header(4711)) is ErrorCode.NONE


def test_the_next_sequence_follows_the_last_record() -> None:
    state = after(header(0, count=5))
    assert state.check(header(5)) is ErrorCode.NONE
    assert state.check(header(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_five_last_batches_are_recognised_with_offset_and_time_and_the_sixth_is_not() -> None:
    state = after(*(header(n * 2, count=2, offset=100 + n * 2, timestamp=1000 + n) for n in range(6)))
    for n in range(1, 6):
        found = state.check(header(n * 2, count=2))
        assert found == BatchMetadata(n * 2, n * 2 + 1, 101 + n * 2, 1, 1000 + n)
        assert found.first_offset == 100 + n * 2
    assert state.check(header(0, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_overlaps_a_known_one_but_is_not_equal_is_out_of_order() -> None:
    assert after(header(0, count=4)).check(header(0, count=3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_from_the_greatest_to_zero() -> None:
    state = after(header(LAST - 1, count=2))
    assert state.check(header(0)) is ErrorCode.NONE
    assert state.check(header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_may_wrap_in_its_middle() -> None:
    state = after(header(LAST - 1, count=5))
    assert state.entries[7].last_sequence == 2
    assert state.check(header(3)) is ErrorCode.NONE
    assert isinstance(state.check(header(LAST - 1, count=5)), BatchMetadata)


def test_an_older_epoch_is_fenced() -> None:
    assert after(header(0, epoch=3)).check(header(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_begins_at_zero_and_forgets_the_batches_before() -> None:
    state = after(header(0, epoch=3))
    assert state.check(header(1, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(0, epoch=4)) is ErrorCode.NONE
    state.update(header(0, epoch=4, offset=9))
    assert [batch.last_offset for batch in state.entries[7].batches] == [9]


def test_an_open_transaction_refuses_what_is_not_part_of_it() -> None:
    state = after(header(0, transactional=True))
    assert state.check(header(1)) is ErrorCode.INVALID_TXN_STATE
    assert state.check(header(1, transactional=True)) is ErrorCode.NONE


def ask(
    state: ProducerStateManager, *, epoch: int = 0, sequence: int = 0, starts_at_zero: bool = False, now_ms: int = 0
) -> Verification | None:
    return state.begin_verification(7, epoch, sequence, starts_at_zero=starts_at_zero, transactional_id="pay", now_ms=now_ms)


def test_a_transaction_begins_only_with_proof_that_its_coordinator_knows_of_it() -> None:
    state = ProducerStateManager()
    first = header(0, transactional=True)
    assert state.check_transactional(first, None) is ErrorCode.INVALID_TXN_STATE
    proof = ask(state)
    assert state.check_transactional(first, proof) is ErrorCode.NONE
    assert state.check_transactional(first, NOT_REQUIRED) is ErrorCode.NONE
    state.update(first)
    assert ask(state) is None, "the open transaction is proof"
    assert state.entries[7].transactional_id == "pay"
    assert state.check_transactional(header(1, transactional=True), None) is ErrorCode.NONE


def test_a_marker_between_question_and_append_makes_the_proof_worthless() -> None:
    state = ProducerStateManager()
    proof = ask(state)
    state.update_marker(marker(5), commit=False, coordinator_epoch=0)
    assert state.check_transactional(header(0, transactional=True), proof) is ErrorCode.INVALID_TXN_STATE
    again = ask(state)
    assert state.check_transactional(header(0, transactional=True), proof) is ErrorCode.INVALID_TXN_STATE
    assert state.check_transactional(header(0, transactional=True), again) is ErrorCode.NONE


def test_an_open_transaction_of_another_epoch_is_no_proof() -> None:
    state = after(header(0, epoch=1, transactional=True))
    assert state.check_transactional(header(1, epoch=2, transactional=True), None) is ErrorCode.INVALID_TXN_STATE
    assert state.check_transactional(header(1, epoch=0, transactional=True), NOT_REQUIRED) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check_coordinated(7, 0, NOT_REQUIRED) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check_coordinated(7, 1, None) is ErrorCode.NONE


def test_a_producer_without_state_may_begin_anywhere_unless_it_bumps_its_epoch_with_each_transaction() -> None:
    state = ProducerStateManager()
    assert state.check(header(4711)) is ErrorCode.NONE
    older = ask(state, sequence=4711)
    assert state.check_transactional(header(4711, transactional=True), older) is ErrorCode.NONE
    bumping = ProducerStateManager()
    proof = ask(bumping, sequence=4711, starts_at_zero=True)
    assert bumping.check_transactional(header(4711, transactional=True), proof) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    ask(bumping, sequence=0, starts_at_zero=True)
    assert bumping.check_transactional(header(0, transactional=True), proof) is ErrorCode.NONE


def test_after_a_marker_with_a_bumped_epoch_sequences_begin_at_zero() -> None:
    state = after(header(0, count=3, transactional=True))
    state.update_marker(marker(3, epoch=1), commit=True, coordinator_epoch=0)
    assert state.entries[7].last_sequence == -1
    expected = {
        (1, 3): ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        (1, 0): ErrorCode.NONE,
        (0, 3): ErrorCode.INVALID_PRODUCER_EPOCH,
    }
    for (epoch, sequence), error in expected.items():
        assert state.check_transactional(header(sequence, epoch=epoch, transactional=True), NOT_REQUIRED) is error


def test_of_two_first_batches_under_way_the_later_one_does_not_overtake_the_earlier() -> None:
    state = ProducerStateManager()
    ask(state, sequence=0)
    proof = ask(state, sequence=5)
    assert state.check_transactional(header(5, transactional=True), proof) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_retry_within_a_transaction_is_recognised_even_after_its_marker() -> None:
    state = ProducerStateManager()
    for n in range(6):
        assert state.check_transactional(header(n, offset=n, transactional=True), NOT_REQUIRED) is ErrorCode.NONE
        state.update(header(n, offset=n, transactional=True))
    state.update_marker(marker(6), commit=True, coordinator_epoch=0)
    for n in range(1, 6):
        found = state.check_transactional(header(n, transactional=True), None)
        assert isinstance(found, BatchMetadata) and found.first_offset == n
    assert state.check_transactional(header(0, transactional=True), NOT_REQUIRED) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_of_a_transaction_wrap_to_zero() -> None:
    state = after(header(LAST - 1, count=2, transactional=True))
    assert state.check_transactional(header(0, transactional=True), None) is ErrorCode.NONE
    assert state.check_transactional(header(1, transactional=True), None) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_expired_producer_keeps_its_open_transaction_and_loses_its_questions() -> None:
    state = after(header(0, transactional=True, timestamp=1000))
    state.verifications.begin(8, 0, 0, starts_at_zero=False, transactional_id="x", now_ms=1000)
    assert state.remove_expired(1000 + state.expiration_ms) == 0
    oldest = state.oldest_open()
    assert oldest is not None and oldest.producer_id == 7
    assert len(state.verifications) == 0
    assert ProducerStateManager().oldest_open() is None


def test_a_transaction_is_unstable_until_its_marker_is_below_the_high_watermark() -> None:
    state = after(header(0, offset=10, transactional=True), header(1, offset=11, transactional=True))
    assert (state.first_unstable_offset(), state.first_undecided_offset()) == (10, 10)
    completed = state.update_marker(marker(12), commit=True, coordinator_epoch=1)
    assert completed is not None
    state.complete(completed)
    assert (state.first_unstable_offset(), state.first_undecided_offset()) == (10, None)
    state.high_watermark_moved(12)
    assert state.first_unstable_offset() == 10
    state.high_watermark_moved(13)
    assert state.first_unstable_offset() is None


def test_an_abort_says_where_the_other_open_transactions_begin() -> None:
    state = after(header(0, offset=10, transactional=True), header(0, offset=20, producer=8, transactional=True))
    completed = state.update_marker(marker(30), commit=False, coordinator_epoch=1)
    assert completed is not None
    assert completed.aborted
    assert state.complete(completed) == AbortedTransaction(7, 10, 30, 20)
    completed = state.update_marker(marker(31, producer=8), commit=False, coordinator_epoch=1)
    assert completed is not None
    assert state.complete(completed) == AbortedTransaction(8, 20, 31, 32)


def test_a_marker_without_a_transaction_completes_nothing_but_moves_the_epoch() -> None:
    state = ProducerStateManager()
    assert state.update_marker(marker(5, epoch=2), commit=True, coordinator_epoch=3) is None
    entry = state.entries[7]
    assert (entry.epoch, entry.coordinator_epoch, entry.last_sequence) == (2, 3, -1)
    assert state.check(header(1, epoch=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(0, epoch=2)) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "version", "expected"),
    [
        (3, 5, 1, ErrorCode.NONE),
        (2, 5, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, 4, 1, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (3, 5, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (4, 5, 2, ErrorCode.NONE),
    ],
)
def test_a_marker_is_fenced_by_producer_and_coordinator_epoch(
    epoch: int, coordinator_epoch: int, version: int, expected: ErrorCode
) -> None:
    state = ProducerStateManager()
    state.update_marker(marker(1, epoch=3), commit=True, coordinator_epoch=5)
    state.update(header(0, epoch=3, offset=2, transactional=True))
    assert state.check_marker(7, epoch, coordinator_epoch, transaction_version=version) is expected


def test_a_marker_of_version_two_with_the_same_epoch_is_a_retry_when_nothing_is_open() -> None:
    state = ProducerStateManager()
    state.update_marker(marker(1, epoch=3), commit=True, coordinator_epoch=5)
    assert state.check_marker(7, 3, 5, transaction_version=2) is ErrorCode.NONE
    assert state.check_marker(99, 0, 0, transaction_version=2) is ErrorCode.NONE


def test_silent_producers_expire_unless_a_transaction_is_open() -> None:
    state = after(
        header(0, timestamp=1000),
        header(0, producer=8, transactional=True, timestamp=1000),
        header(0, producer=9, timestamp=5000),
    )
    state.expiration_ms = 3000
    assert state.remove_expired(4000) == 1
    assert sorted(state.entries) == [8, 9]


def test_a_snapshot_of_kafka_reads_and_writes_back_byte_for_byte() -> None:
    raw = SNAPSHOT.read_bytes()
    (entry,) = decode_snapshot(raw)
    assert (entry.producer_id, entry.epoch, entry.coordinator_epoch, entry.batches) == (0, 1, 0, [])
    assert encode_snapshot([entry]) == raw
    assert len(encode_snapshot([])) == 10


def test_a_snapshot_keeps_the_last_batch_and_open_transactions() -> None:
    state = after(header(0, count=3, offset=10, transactional=True), header(LAST, count=2, offset=20, producer=8))
    loaded = ProducerStateManager()
    loaded.load_snapshot(state.encode_snapshot(), 22, now_ms=2000)
    loaded.check_invariants()
    assert loaded.first_undecided_offset() == 10
    assert loaded.entries[7].batches == [BatchMetadata(0, 2, 12, 2, 1000)]
    assert loaded.entries[8].batches == [BatchMetadata(LAST, 0, 21, 1, 1000)]
    assert loaded.check(header(3, transactional=True)) is ErrorCode.NONE


def test_expired_producers_do_not_come_back_from_a_snapshot() -> None:
    state = after(header(0, timestamp=1000))
    loaded = ProducerStateManager(expiration_ms=500)
    loaded.load_snapshot(state.encode_snapshot(), 1, now_ms=1500)
    assert loaded.entries == {}


@pytest.mark.parametrize(
    "damage",
    [lambda raw: raw[:-1], lambda raw: raw[:5], lambda raw: b"\0\2" + raw[2:], lambda raw: raw[:20] + b"\x55" + raw[21:]],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(damage) -> None:  # type: ignore[no-untyped-def]
    state = after(header(0))
    with pytest.raises(CorruptSnapshot):
        state.load_snapshot(damage(encode_snapshot([ProducerEntry(1, 0)])), 5, now_ms=0)
    assert list(state.entries) == [7]
