"""The end of a partition, as its leader knows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tidelog.broker.apis.groups.share_lag import latest_offset
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


def context(leader: int, answer: Any = None) -> Any:
    async def ask(broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        assert (broker_id, request.topics[0].name, request.topics[0].partitions[0].timestamp) == (2, "t", -1)
        if isinstance(answer, ErrorCode):
            raise KafkaError(answer)
        return answer

    log = SimpleNamespace(high_watermark=7)
    replicas = SimpleNamespace(by_name=lambda topic, index: SimpleNamespace(log=log))
    image = SimpleNamespace(topics=SimpleNamespace(partition=lambda topic, index: SimpleNamespace(leader=leader)))
    node = SimpleNamespace(node_id=1, replicas=replicas, others=SimpleNamespace(ask=ask))
    return SimpleNamespace(image=image, node=node)


def listed(offset: int, error: int = 0) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=error, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])


@pytest.mark.parametrize(
    ("leader", "answer", "offset"),
    [
        (1, None, 7),
        (-1, None, None),
        (2, listed(9), 9),
        (2, listed(-1, 6), None),
        (2, ListOffsetsResponse(), None),
        (2, ErrorCode.NETWORK_EXCEPTION, None),
    ],
)
def test_the_leader_knows_the_end(leader: int, answer: Any, offset: int | None) -> None:
    assert run(latest_offset(context(leader, answer), "t", 0)) == offset
