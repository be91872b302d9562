import pytest

from sim.workload import append, batch, new_log
from tidelog.model.errors import StorageFailure
from tidelog.storage.log_config import LogConfig


def test_the_first_failure_is_the_one_that_stays() -> None:
    log = new_log()
    first = log.files.fail("append", OSError("no space"))
    assert log.files.fail("read", OSError("gone")) is first is log.failure
    with pytest.raises(StorageFailure, match="no space"):
        append(log, batch())


def test_a_renamed_directory_takes_its_segments_along() -> None:
    log = new_log()
    log.files.moved_to("/elsewhere/t-0")
    assert log.dir == "/elsewhere/t-0"
    assert {segment.dir for segment in log.segments} == {"/elsewhere/t-0"}


def test_what_is_replaced_cannot_be_read_after_a_crash_and_needs_no_recovery() -> None:
    log = new_log(config=LogConfig(segment_bytes=100))
    for _ in range(3):
        append(log, batch())
    oldest = log.segments[0]
    log.files.replace([oldest], [])
    assert log.recovery_point == log.segments[0].base_offset > oldest.base_offset
