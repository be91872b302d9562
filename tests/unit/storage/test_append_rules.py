"""An append as the leader: offsets, answers, and nothing remembered of what was not written."""

import errno
from functools import partial

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction, new_log, offsets
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.records.batch import read_header
from tidelog.storage import reading
from tidelog.storage.append_rules import read_marker
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.verification_guard import NOT_REQUIRED
from tidelog.testing.simulation.disk import SimDisk


def test_batches_get_the_next_offsets_and_the_leaders_epoch_in_the_file() -> None:
    log = new_log()
    assert (append(log, batch(3), leader_epoch=5).first_offset, append(log, batch(2), leader_epoch=5).last_offset) == (0, 4)
    second = read_header(log.active.file.read(0, log.active.size), read_header(log.active.file.read(0, 61 + 200)).size)
    assert (second.base_offset, second.leader_epoch) == (3, 5)
    assert offsets(log) == [(0, 2), (3, 4)]
    assert log.leader_epochs.entries() == [(5, 0)]


def test_the_answer_tells_the_brokers_time_only_where_that_is_the_timestamp() -> None:
    assert append(new_log(), batch()).log_append_time_ms == -1
    log = new_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    assert append(log, batch(timestamp_ms=5), now_ms=NOW_MS + 9).log_append_time_ms == NOW_MS + 9
    assert log.active.max_timestamp == NOW_MS + 9


def test_a_duplicate_is_answered_with_the_original_offsets_and_not_written() -> None:
    log = new_log()
    append(log, batch(2))
    first = append(log, batch(3, producer=(7, 0, 0)))
    append(log, batch(1, producer=(7, 0, 3)))
    size = log.active.size
    again = append(log, batch(3, producer=(7, 0, 0)))
    assert (again.error, again.duplicate, again.first_offset, again.last_offset) == (ErrorCode.NONE, True, first.first_offset, 4)
    assert log.active.size == size


def test_a_duplicate_on_a_log_append_time_topic_has_the_original_time() -> None:
    log = new_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    append(log, batch(producer=(7, 0, 0)), now_ms=NOW_MS + 1)
    assert append(log, batch(producer=(7, 0, 0)), now_ms=NOW_MS + 50).log_append_time_ms == NOW_MS + 1


def test_a_sequence_error_says_what_was_sent_and_what_is_known() -> None:
    log = new_log()
    append(log, batch(producer=(7, 0, 0)))
    result = append(log, batch(producer=(7, 0, 5)))
    assert result.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert result.error_message is not None
    assert "sequence 5" in result.error_message
    assert (result.first_offset, log.log_end_offset) == (-1, 1)


def test_a_refused_batch_leaves_no_trace() -> None:
    log = new_log()
    data = batch()
    data[-1] ^= 1
    result = append(log, data)
    assert (result.error, log.log_end_offset, log.active.size) == (ErrorCode.CORRUPT_MESSAGE, 0, 0)
    assert log.leader_epochs.entries() == []


def test_a_compacted_topic_refuses_a_record_without_a_key_by_name() -> None:
    from tidelog.records.builder import RecordData, build_batch

    log = new_log(config=LogConfig(cleanup_policy=frozenset({"compact"})))
    result = append(log, build_batch([RecordData(b"k", b"v", NOW_MS, ()), RecordData(None, b"v", NOW_MS, ())]))
    assert result.error is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in result.record_errors] == [1]


def test_a_flush_is_asked_for_after_flush_messages() -> None:
    log = new_log(config=LogConfig(flush_messages=3))
    assert not append(log, batch(2)).needs_flush
    assert append(log, batch(1)).needs_flush
    log.flush()
    assert not append(log, batch(1)).needs_flush


def test_an_aborted_transaction_is_in_the_index_of_the_segment_with_its_marker() -> None:
    log = new_log()
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    log.roll(NOW_MS)
    assert log.last_stable_offset == 0
    end_transaction(log, 7, commit=False)
    assert log.segments[0].transactions() == []
    assert [(entry.first_offset, entry.last_offset) for entry in log.active.transactions()] == [(0, 2)]
    assert log.last_stable_offset == 3
    log.check()


def test_a_batch_outside_of_a_transaction_that_the_coordinator_knows_is_refused_with_a_reason() -> None:
    log = new_log()
    refused = log.append_as_leader(memoryview(batch(producer=(7, 0, 0), transactional=True)), 0, NOW_MS)
    assert refused.error is ErrorCode.INVALID_TXN_STATE and log.log_end_offset == 0
    assert refused.error_message is not None and "not part of an open transaction" in refused.error_message
    append(log, batch(producer=(7, 0, 0), transactional=True))
    outside = append(log, batch(producer=(7, 0, 1)))
    assert outside.error is ErrorCode.INVALID_TXN_STATE and "outside of its open transaction" in (outside.error_message or "")


def test_what_a_coordinator_writes_for_a_producer_needs_the_same_proof_but_no_sequence() -> None:
    log = new_log()
    write = partial(log.append_as_leader, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    data = batch(producer=(7, 1, 0), transactional=True)
    assert write(memoryview(bytearray(data))).error is ErrorCode.INVALID_TXN_STATE
    assert write(memoryview(bytearray(data)), proof=NOT_REQUIRED).error is ErrorCode.NONE
    assert write(memoryview(bytearray(data))).error is ErrorCode.NONE, "sequence 0 again, within the open transaction"
    old = batch(producer=(7, 0, 0), transactional=True)
    assert write(memoryview(old), proof=NOT_REQUIRED).error is ErrorCode.INVALID_PRODUCER_EPOCH
    log.check()


def test_a_marker_of_an_old_coordinator_is_fenced() -> None:
    log = new_log()
    end_transaction(log, 7, commit=True, coordinator_epoch=4)
    assert end_transaction(log, 7, commit=True, coordinator_epoch=3).error is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 1


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.ESTALE, errno.EROFS])
def test_a_write_that_fails_takes_the_log_out_of_service_for_good(code: int) -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(producer=(7, 0, 0)))
    disk.fail("write", 1, code)
    with pytest.raises(StorageFailure, match="/data"):
        append(log, batch(producer=(7, 0, 1)))
    disk.heal()
    with pytest.raises(StorageFailure):
        append(log, batch(producer=(7, 0, 1)))
    with pytest.raises(StorageFailure):
        reading.read(log, 0, 100, upto=1, min_one=True)
    assert log.log_end_offset == 1
    assert log.producers.entries[7].last_sequence == 0


def test_a_full_disk_fails_the_append_that_does_not_fit() -> None:
    disk = SimDisk(capacity=1000)
    log = new_log(disk)
    with pytest.raises(StorageFailure, match="no space"):
        for _ in range(20):
            append(log, batch(value=b"x" * 100))
    assert offsets(log)[-1][1] == log.log_end_offset - 1


def test_what_is_no_marker_reads_as_none() -> None:
    assert read_marker(bytes(100)) is None
    from tidelog.records.control import ControlType, control_batch, snapshot_footer_value

    assert read_marker(control_batch([(ControlType.SNAPSHOT_FOOTER, snapshot_footer_value())], timestamp_ms=1)) is None
