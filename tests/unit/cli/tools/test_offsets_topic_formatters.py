"""Records of the offsets topic as JSON."""

import pytest

from tidelog.cli.tools.consumed_record import Consumed
from tidelog.cli.tools.message_formatters import formatter
from tidelog.protocol.messages.offset_commit_key import OffsetCommitKey
from tidelog.protocol.messages.offset_commit_value import OffsetCommitValue
from tidelog.protocol.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from tidelog.protocol.messages.share_group_target_assignment_metadata_value import ShareGroupTargetAssignmentMetadataValue
from tidelog.protocol.messages.share_update_key import ShareUpdateKey
from tidelog.protocol.messages.share_update_value import ShareUpdateValue


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


def test_records_of_share_groups_are_printed_with_ids_as_kafka_writes_them():
    key = b"\0\x0c" + ShareGroupTargetAssignmentMetadataKey(group_id="g").encode(0)
    value = b"\0\0" + ShareGroupTargetAssignmentMetadataValue(assignment_epoch=4).encode(0)
    record = Consumed("__consumer_offsets", 0, 0, key, value)
    print_ = formatter("org.apache.kafka.tools.consumer.ShareGroupMessageFormatter", {})
    assert print_(record) == b'{"key":{"type":12,"data":{"groupId":"g"}},"value":{"version":0,"data":{"assignmentEpoch":4}}}\n'
    value = b"\0\0" + ShareGroupTargetAssignmentMetadataValue(assignment_epoch=4, assignment_timestamp=9).encode(0)
    assert b'{"assignmentEpoch":4,"assignmentTimestamp":9}' in print_(record._replace(value=value))
    assert formatter("OffsetsMessageFormatter", {})(record) == b""
    key = b"\0\1" + ShareUpdateKey(group_id="g", topic_id=b"\xff" * 16, partition=3).encode(0)
    value = b"\0\0" + ShareUpdateValue(snapshot_epoch=1, leader_epoch=2, start_offset=5).encode(0)
    assert formatter("ShareGroupStateMessageFormatter", {})(Consumed("__share_group_state", 0, 0, key, value)) == (
        b'{"key":{"type":1,"data":{"groupId":"g","topicId":"_____________________w","partition":3}},"value":{"version":0,"data":'
        b'{"snapshotEpoch":1,"leaderEpoch":2,"startOffset":5,"stateBatches":[]}}}\n'
    )
