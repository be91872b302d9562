"""What compaction leaves of single batches: one case per rule. Whole logs, and Kafka's own results, are in test_cleaner.py."""

import pytest

from tidelog.records.batch import BatchHeader, CorruptBatch, read_header
from tidelog.records.builder import RecordData, build_batch, empty_batch
from tidelog.records.control import ControlType, EndTxnMarker, control_batch, end_txn_marker_batch
from tidelog.records.record import iter_records
from tidelog.storage.cleaner_filter import BYTES_PER_KEY, SMALLEST_LIMIT, BatchFilter, LastRecord, OffsetMap, TransactionFilter
from tidelog.storage.index import AbortedTransaction

NOW = 100_000
RETENTION = 5_000


def batch(*records: tuple[bytes | None, bytes | None], base_offset: int = 0, **settings: object) -> bytearray:
    return build_batch([RecordData(k, v, 1000) for k, v in records], base_offset=base_offset, **settings)  # type: ignore[arg-type]


def marker(base_offset: int, *, commit: bool, producer_id: int = 7) -> bytearray:
    return end_txn_marker_batch(
        EndTxnMarker(commit, 0), producer_id=producer_id, producer_epoch=0, timestamp_ms=1000, base_offset=base_offset
    )


def offsets_of(entries: dict[bytes, int], latest: int) -> OffsetMap:
    offsets = OffsetMap(100)
    for key, offset in entries.items():
        assert offsets.put(key, offset)
    offsets.accounted_for(latest)
    return offsets


def filtered(
    data: bytes | bytearray,
    entries: dict[bytes, int] | None = None,
    *,
    latest: int = 1000,
    last_records: dict[int, LastRecord] | None = None,
    upper_bound: int = 5000,
    now_ms: int = NOW,
    transactions: TransactionFilter | None = None,
) -> bytearray | bytes | None:
    """What is left of one batch."""
    chosen = BatchFilter(
        offsets_of(entries or {}, latest),
        transactions or TransactionFilter(),
        last_records or {},
        upper_bound=upper_bound,
        now_ms=now_ms,
        delete_retention_ms=RETENTION,
    )
    left = chosen.filter(read_header(data), data)
    assert not isinstance(left, memoryview)
    return left


def header_left(*args: object, **settings: object) -> BatchHeader:
    left = filtered(*args, **settings)  # type: ignore[arg-type]
    assert left is not None
    return read_header(left)


def offsets_left(left: bytes | bytearray | None) -> list[int]:
    return [] if left is None else [record.offset for record in iter_records(left)]


class TestOffsetMap:
    def test_the_latest_offset_of_a_key_counts(self) -> None:
        offsets = OffsetMap(10)
        for key, offset in [(b"a", 1), (b"b", 2), (b"a", 3)]:
            assert offsets.put(key, offset)
        assert (offsets.offset_of(b"a"), offsets.offset_of(b"b"), offsets.offset_of(b"c"), len(offsets)) == (3, 2, -1, 2)

    def test_long_keys_are_told_apart_and_from_short_ones(self) -> None:
        offsets = OffsetMap(1000)
        keys = [b"k" * length for length in range(40)] + [b"k" * 300 + b"%d" % i for i in range(100)]
        for offset, key in enumerate(keys):
            assert offsets.put(key, offset)
        assert [offsets.offset_of(key) for key in keys] == list(range(len(keys)))

    def test_a_full_map_takes_known_keys_only(self) -> None:
        offsets = OffsetMap(2)
        assert offsets.put(b"a", 1) and offsets.put(b"b", 2)
        assert not offsets.put(b"c", 3)
        assert offsets.put(b"a", 4)
        assert offsets.offset_of(b"a") == 4

    def test_memory_gives_the_limit(self) -> None:
        assert OffsetMap.within(BYTES_PER_KEY * 50_000).limit == 50_000
        assert OffsetMap.within(1).limit == SMALLEST_LIMIT

    def test_a_batch_counts_from_the_first_dirty_offset_and_without_keyless_records(self) -> None:
        data = batch((b"a", b""), (None, b""), (b"b", None), (b"a", b""), base_offset=10, codec=4)
        offsets = OffsetMap(10)
        assert offsets.add_batch(read_header(data), data, 11)
        assert (offsets.offset_of(b"a"), offsets.offset_of(b"b"), len(offsets)) == (13, 12, 2)

    def test_a_batch_that_does_not_fit_says_so(self) -> None:
        data = batch((b"a", b""), (b"b", b""))
        assert not OffsetMap(1).add_batch(read_header(data), data, 0)


def test_a_batch_that_keeps_everything_is_the_very_same_bytes() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"))
    assert filtered(data, {b"a": 0, b"b": 1}) is data


def test_records_with_a_later_value_go() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"))
    assert offsets_left(filtered(data, {b"a": 2, b"b": 900, b"c": 3})) == [2, 3]


def test_a_key_that_the_map_does_not_know_has_no_later_value() -> None:
    assert offsets_left(filtered(batch((b"a", b"1")))) == [0]


def test_records_without_a_key_go() -> None:
    assert offsets_left(filtered(batch((None, b"1"), (b"a", b"2")), {b"a": 1})) == [1]


def test_records_past_the_map_stay_whatever_they_are() -> None:
    data = batch((None, b"1"), (b"a", b"2"), base_offset=50)
    assert filtered(data, {b"a": 900}, latest=49) is data


def test_a_batch_of_which_nothing_is_left_goes() -> None:
    assert filtered(batch((b"a", b"1")), {b"a": 9}) is None


def test_tombstones_get_a_horizon_when_they_are_first_seen_and_keep_it() -> None:
    first = filtered(batch((b"a", None), (b"b", b"x")), {b"a": 0, b"b": 1})
    assert first is not None
    assert read_header(first).delete_horizon_ms == NOW + RETENTION
    assert filtered(first, {b"a": 0, b"b": 1}, now_ms=NOW + RETENTION - 1) is first
    assert offsets_left(filtered(first, {b"a": 0, b"b": 1}, now_ms=NOW + RETENTION)) == [1]
    smaller = filtered(first, {b"a": 0, b"b": 9}, now_ms=NOW + 1)
    assert smaller is not None
    assert read_header(smaller).delete_horizon_ms == NOW + RETENTION


def test_a_tombstone_with_a_later_value_needs_no_horizon() -> None:
    assert not header_left(batch((b"a", None), (b"b", b"x")), {b"a": 5, b"b": 1}).has_delete_horizon


def test_the_last_batch_of_a_producer_keeps_its_header() -> None:
    data = batch((b"a", b"1"), (b"b", b"1"), producer_id=3, producer_epoch=1, base_sequence=4)
    gone = {b"a": 9, b"b": 9}
    assert filtered(data, gone, last_records={3: LastRecord(1, 1)}) == empty_batch(read_header(data))
    assert filtered(data, gone, last_records={3: LastRecord(8, 1)}) is None
    assert filtered(data, gone, last_records={4: LastRecord(1, 1)}) is None
    assert filtered(data, gone) is None


def test_an_empty_header_stays_only_as_long_as_it_is_needed() -> None:
    empty = empty_batch(read_header(batch((b"a", b"1"), producer_id=3, producer_epoch=1, base_sequence=4)))
    assert filtered(empty, last_records={3: LastRecord(0, 1)}) == empty
    assert filtered(empty, last_records={3: LastRecord(77, 1)}) is None


def test_the_last_batch_of_a_round_keeps_its_header() -> None:
    data = batch((b"a", b"1"), (b"b", b"1"))
    assert filtered(data, {b"a": 9, b"b": 9}, upper_bound=2) == empty_batch(read_header(data))


def test_a_marker_is_all_that_is_left_of_a_producer_whose_epoch_fences() -> None:
    data = marker(0, commit=True)
    stamped = filtered(data)
    assert stamped is not None and read_header(stamped).delete_horizon_ms == NOW + RETENTION
    later = NOW + RETENTION
    assert filtered(stamped, now_ms=later) is None
    assert filtered(stamped, now_ms=later, last_records={7: LastRecord(None, 0)}) == empty_batch(read_header(stamped))
    assert filtered(stamped, now_ms=later, last_records={7: LastRecord(None, 5)}) is None


def test_a_commit_marker_stays_without_a_horizon_while_records_of_its_transaction_are_left() -> None:
    transactions = TransactionFilter()
    data = batch((b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert filtered(data, {b"a": 0}, transactions=transactions) is data
    commit = marker(1, commit=True)
    assert filtered(commit, transactions=transactions) is commit
    second = header_left(marker(2, commit=True), transactions=transactions)
    assert second.has_delete_horizon, "the next transaction of that producer was empty"


def test_aborted_records_go_and_the_index_entry_stays_with_the_marker() -> None:
    entry = AbortedTransaction(7, 0, 2, 3)
    transactions = TransactionFilter()
    transactions.add_aborted([entry, entry])
    data = batch((b"a", b"1"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    other = batch((b"b", b"1"), base_offset=1, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    assert filtered(data, {b"a": 0}, transactions=transactions) is None
    assert filtered(other, {b"b": 1}, transactions=transactions) is other
    abort = marker(2, commit=False)
    assert filtered(abort, transactions=transactions) is abort
    assert transactions.kept == [entry]
    later = batch((b"a", b"1"), base_offset=3, producer_id=7, producer_epoch=0, base_sequence=1, transactional=True)
    assert filtered(later, {b"a": 3}, transactions=transactions) is later, "the next transaction is not the aborted one"


def test_an_abort_marker_of_nothing_gets_its_horizon_and_no_index_entry() -> None:
    transactions = TransactionFilter()
    transactions.add_aborted([AbortedTransaction(7, 0, 2, 3)])
    assert header_left(marker(2, commit=False), transactions=transactions).has_delete_horizon
    assert transactions.kept == []


def test_control_records_that_are_no_markers_stay() -> None:
    data = control_batch([(ControlType.LEADER_CHANGE, b"\0\0")], timestamp_ms=1)
    assert filtered(data) is data


def test_a_batch_is_not_given_a_right_checksum_over_wrong_bytes() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"))
    data[-2] ^= 0xFF
    with pytest.raises(CorruptBatch, match="checksum"):
        filtered(data, {b"a": 9, b"b": 1})


def test_counters_count_records() -> None:
    data = batch((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    chosen = BatchFilter(
        offsets_of({b"a": 2, b"b": 1}, 10), TransactionFilter(), {}, upper_bound=99, now_ms=NOW, delete_retention_ms=RETENTION
    )
    chosen.filter(read_header(data), data)
    assert (chosen.records_read, chosen.records_kept) == (3, 2)
