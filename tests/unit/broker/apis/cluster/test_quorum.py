from __future__ import annotations

from collections.abc import Coroutine
from types import SimpleNamespace

import pytest

from tests.unit.broker.node_world import NOW_MS, NodeWorld, run
from tidelog.broker.apis.cluster.quorum import describe_quorum, describe_quorum_here
from tidelog.broker.ports import Asker
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from tidelog.raft.description import QuorumDescription, ReplicaDescription
from tidelog.records.control import Endpoint

QUORUM = QuorumDescription(1, 5, 70, (ReplicaDescription(1, Uuid(b"D" * 16), 72, (Endpoint("CONTROLLER", "h", 9093),)),))


class Controller:
    def describe_quorum(self) -> QuorumDescription:
        return QUORUM


def ask(version: int, *asked: tuple[str, list[int]]) -> DescribeQuorumResponse:
    world = NodeWorld()
    world.broker.controller = Controller()  # type: ignore[assignment]
    topics = [RequestTopicData(name, [RequestPartitionData(index) for index in indexes]) for name, indexes in asked]
    response = describe_quorum(world.context(version), DescribeQuorumRequest(topics=topics))
    assert isinstance(response, DescribeQuorumResponse)
    return DescribeQuorumResponse.decode(response.encode(version), version)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_described_as_far_as_the_version_can_tell(version: int) -> None:
    response = ask(version, ("__cluster_metadata", [0]))
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 5, 70)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset, partition.observers) == (1, 72, [])
    assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == (NOW_MS if version >= 1 else -1)
    assert voter.replica_directory_id == (b"D" * 16 if version >= 2 else bytes(16))
    nodes = [(node.node_id, [(at.name, at.host, at.port) for at in node.listeners]) for node in response.nodes]
    assert nodes == ([(1, [("CONTROLLER", "h", 9093)])] if version >= 2 else [])


@pytest.mark.parametrize("asked", [("t", [0]), ("__cluster_metadata", [1]), ("__cluster_metadata", [0, 1])])
def test_any_other_partition_is_unknown(asked: tuple[str, list[int]]) -> None:
    response = ask(2, asked)
    assert [each.error_code for each in response.topics[0].partitions] == [3] * len(asked[1])
    assert response.nodes == []


def test_nothing_asked_is_nothing_answered() -> None:
    assert ask(2).topics == []


class Elsewhere:
    """Another controller leads, and is asked in the client's version."""

    def __init__(self, answer: DescribeQuorumResponse | KafkaError) -> None:
        self.answer = answer

    def describe_quorum(self) -> None:
        return None

    async def forward(
        self, api_key: int, version: int, request: DescribeQuorumRequest, asker: Asker | None = None
    ) -> DescribeQuorumResponse:
        if isinstance(self.answer, KafkaError):
            raise self.answer
        return self.answer


def forwarded(version: int, answer: DescribeQuorumResponse | KafkaError | Elsewhere) -> DescribeQuorumResponse:
    world = NodeWorld()
    world.broker.controller = answer if isinstance(answer, Elsewhere) else Elsewhere(answer)  # type: ignore[assignment]
    request = DescribeQuorumRequest(topics=[RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
    later = describe_quorum(world.context(version), request)
    assert isinstance(later, Coroutine)
    return DescribeQuorumResponse.decode(run(later).encode(version), version)


@pytest.mark.parametrize("version", range(3))
def test_a_broker_passes_on_what_the_leader_says(version: int) -> None:
    said = ask(version, ("__cluster_metadata", [0]))
    assert forwarded(version, said) == said


def test_while_nobody_leads_the_client_is_told_to_ask_again() -> None:
    response = forwarded(2, KafkaError(ErrorCode.REQUEST_TIMED_OUT, "nobody leads"))
    assert (response.error_code, response.error_message, response.topics) == (7, "nobody leads", [])


def test_a_controller_that_does_not_lead_says_so_itself() -> None:
    side = SimpleNamespace(controller=Elsewhere(KafkaError(ErrorCode.NOT_CONTROLLER)))
    ctx = NodeWorld().context(2)
    ctx.node = side  # type: ignore[assignment]
    request = DescribeQuorumRequest(topics=[RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
    response = describe_quorum_here(ctx, request)  # type: ignore[arg-type]
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_node_elected_while_it_asked_answers_itself() -> None:
    class Elected(Elsewhere):
        told: QuorumDescription | None = None

        def describe_quorum(self) -> QuorumDescription | None:  # type: ignore[override]
            return self.told

        async def forward(self, *asked: object) -> DescribeQuorumResponse:
            self.told = QUORUM
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    response = forwarded(2, Elected(DescribeQuorumResponse()))
    assert response.error_code == 0
    assert (response.topics[0].partitions[0].leader_id, response.topics[0].partitions[0].leader_epoch) == (1, 5)
