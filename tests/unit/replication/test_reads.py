from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.replication.reads import PartitionRead


def test_a_read_that_failed_has_no_offsets_and_no_records() -> None:
    read = PartitionRead(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (read.high_watermark, read.last_stable_offset, read.log_start_offset) == (-1, -1, -1)
    assert (read.records, read.size, read.aborted, read.diverging, read.caught_up) == (None, 0, None, None, False)
