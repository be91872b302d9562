"""What lies between a committed offset and the end of a log; leaders that cannot be reached."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.console.group_samples import AT, HEALTHY
from tidelog.client.calls import Each
from tidelog.client.failures import NoConnection
from tidelog.console.partition_collecting import markers_alone, with_offsets
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch

RECORD = bytes(build_batch([RecordData(None, b"x")], base_offset=10))
MARKERS = b"".join(
    bytes(end_txn_marker_batch(EndTxnMarker(True, 0), producer_id=7, producer_epoch=0, timestamp_ms=0, base_offset=offset))
    for offset in (11, 12)
)


def test_a_lag_is_of_markers_alone_when_they_reach_the_end() -> None:
    assert markers_alone(RECORD + MARKERS, 11, 13), "a Fetch gives the whole batch before them, too"
    assert not markers_alone(RECORD + MARKERS, 10, 13)
    assert not markers_alone(MARKERS, 11, 14)
    assert not markers_alone(MARKERS[:-1], 11, 13)
    assert not markers_alone(b"", 11, 13)


def test_a_leader_that_cannot_be_reached_leaves_its_partitions_without_offsets() -> None:
    part = replace(HEALTHY, start=None, stable=None, end=None)
    call = with_offsets({AT: part})
    asked = next(call)
    assert isinstance(asked, Each)
    (ends,) = asked.calls
    next(ends)
    with pytest.raises(StopIteration) as refused:
        ends.throw(NoConnection("10.0.0.1:9 cannot be reached"))
    with pytest.raises(StopIteration) as end:
        call.send([refused.value.value])
    assert end.value.value == {AT: replace(part, unreachable="10.0.0.1:9 cannot be reached")}
