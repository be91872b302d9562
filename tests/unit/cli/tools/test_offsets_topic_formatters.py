"""Records of the offsets topic as JSON."""

import pytest

from tidelog.cli.tools.consumed_record import Consumed
from tidelog.cli.tools.message_formatters import formatter
from tidelog.protocol.messages.offset_commit_key import OffsetCommitKey
from tidelog.protocol.messages.offset_commit_value import OffsetCommitValue


def test_committed_offsets_are_printed_as_json():
    key = b"\0\1" + OffsetCommitKey(group="g", topic="t", partition=1).encode(0)
    value = b"\0\3" + OffsetCommitValue(offset=9, metadata="m", commit_timestamp=5).encode(3)
    record = Consumed("__consumer_offsets", 0, 0, key, value)
    assert formatter("OffsetsMessageFormatter", {})(record) == (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":1}},"value":{"version":3,"data":'
        b'{"offset":9,"leaderEpoch":-1,"metadata":"m","commitTimestamp":5}}}\n'
    )
    assert formatter("GroupMetadataMessageFormatter", {})(record) == b""
    assert formatter("OffsetsMessageFormatter", {})(record._replace(value=None)).endswith(b'"value":null}\n')


def test_a_value_that_cannot_be_read_is_an_error_of_that_record():
    record = Consumed("__consumer_offsets", 3, 8, b"\0\1" + OffsetCommitKey(group="g", topic="t").encode(0), b"\0\3\0")
    with pytest.raises(ValueError, match="offset 8 of partition 3"):
        formatter("OffsetsMessageFormatter", {})(record)
