"""Where a query begins."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

import pytest

from tidelog.client.metadata import Leader, Topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition, uuid_to_text
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.model import Source
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.pipeline.starts import continued, first_offsets, range_options, starting_offsets
from tidelog.spark.planning import SourceOffset

ID, OTHER = b"\x01" * 16, b"\x02" * 16
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SOURCE = Source("s", ("t",))


class OneTopic:
    """Two partitions with offsets 2 to 9."""

    def topics(self, names: tuple[str, ...] | None, pattern: str | None = None) -> dict[str, Topic]:
        leaders = {0: Leader(1, 0), 1: Leader(1, 0)}
        return {"t": Topic(name="t", topic_id=ID, leaders=leaders, internal=False, error=ErrorCode.NONE)}

    def offsets(self, wanted: Mapping[TopicPartition, int], isolation_level: int = 0) -> dict[TopicPartition, int]:
        known = {EARLIEST_TIMESTAMP: 2, LATEST_TIMESTAMP: 9}
        return {at: known.get(when, -1 if when > 1000 else 5) for at, when in wanted.items()}


@pytest.mark.parametrize(("start", "offset"), [("earliest", 2), ("latest", 9), ("500", 5), ("5000", 9)])
def test_the_first_offsets_are_asked_of_the_cluster(start: str, offset: int) -> None:
    found = first_offsets(OneTopic(), dataclasses.replace(SOURCE, start=start), 1)
    assert found == SourceOffset({T0: offset, T1: offset}, {"t": uuid_to_text(ID)})


def test_it_goes_on_where_a_table_ended_and_new_partitions_begin_at_their_beginning() -> None:
    end = SourceOffset({T0: 7}, {"t": uuid_to_text(ID)})
    assert continued(OneTopic(), SOURCE, end).positions == {T0: 7, T1: 2}


def test_a_topic_made_again_is_told_or_read_from_its_beginning() -> None:
    end = SourceOffset({T0: 7}, {"t": uuid_to_text(OTHER)})
    with pytest.raises(PipelineFailure, match=r"t was deleted and created again.*on_data_loss: log for the source s"):
        continued(OneTopic(), SOURCE, end)
    lenient = dataclasses.replace(SOURCE, fail_on_data_loss=False)
    assert continued(OneTopic(), lenient, end).positions == {T0: 2, T1: 2}


def test_options_name_every_partition() -> None:
    assert json.loads(starting_offsets(OneTopic(), SOURCE, SourceOffset({T0: 7}))) == {"t": {"0": 7, "1": -2}}
    options = range_options((OffsetRange("t", "", 0, 3, 5), OffsetRange("t", "", 1, 4, 4)))
    assert {name: json.loads(text) for name, text in options.items()} == {
        "assign": {"t": [0, 1]},
        "startingOffsets": {"t": {"0": 3, "1": 4}},
        "endingOffsets": {"t": {"0": 5, "1": 4}},
    }
