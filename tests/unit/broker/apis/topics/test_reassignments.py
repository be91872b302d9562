from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.topics.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest


@pytest.mark.parametrize("version", range(2))
def test_each_partition_is_answered_by_itself(version: int) -> None:
    world = NodeWorld()
    world.create("t", 3)
    wanted = [ReassignablePartition(0, None), ReassignablePartition(1, [1]), ReassignablePartition(2, [1, 2])]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", wanted)])
    response = run(alter_partition_reassignments(world.context(version), request))
    decoded = type(response).decode(response.encode(version), version)
    assert [each.error_code for each in decoded.responses[0].partitions] == [85, 0, 39]
    assert list_partition_reassignments(world.context(0), ListPartitionReassignmentsRequest()).topics == []


def test_a_refusal_of_all_is_told() -> None:
    stopped = KafkaError(ErrorCode.NOT_CONTROLLER, "the controller has stopped")
    request = AlterPartitionReassignmentsRequest()
    answer = refused(NodeWorld().context(1), ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, stopped)
    assert (answer.error_code, answer.error_message) == (41, stopped.detail)
