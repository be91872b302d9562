from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, refused
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from tidelog.server.cluster.controller_link import ControllerLink, _not_active
from tidelog.server.runtime import LoopRuntime


@pytest.fixture
def three(tmp_path: Path) -> Iterator[SeveralNodes]:
    world = SeveralNodes(tmp_path)
    yield world
    world.close()


def test_what_a_node_asks_reaches_the_active_controller_wherever_it_is(three: SeveralNodes) -> None:
    async def main() -> None:
        await three.start()
        for node_id in three.ids:
            assert await three.create(node_id, f"t{node_id}") == ErrorCode.NONE
            assert await three.create(node_id, f"t{node_id}") == ErrorCode.TOPIC_ALREADY_EXISTS
        await three.everywhere(lambda node: len(node.broker.image.topics.by_name) == 3)

    three.run(main)


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_that_one_broker_was_asked_to_set_are_known_to_all(three: SeveralNodes, version: int) -> None:
    user = RequestEntityData(entity_type="user", entity_name=None)
    request = AlterClientQuotasRequest(entries=[RequestEntryData([user], [OpData("producer_byte_rate", 5.0)])])

    async def main() -> None:
        await three.start()
        response = await three.nodes[three.passive()].controller.submit(QuorumController.alter_client_quotas, request, version)
        assert [each.error_code for each in response.entries] == [ErrorCode.NONE]
        await three.everywhere(lambda node: node.broker.image.quotas == {(("user", None),): {"producer_byte_rate": 5.0}})

    three.run(main)


@pytest.mark.parametrize(("code", "asks_again"), [(ErrorCode.NOT_CONTROLLER, True), (ErrorCode.INVALID_REQUEST, False)])
def test_quotas_go_to_the_next_controller_when_the_one_that_was_asked_is_not_active(code: ErrorCode, asks_again: bool) -> None:
    """A response that says so for its entries only, like that of AlterClientQuotas."""
    request = AlterClientQuotasRequest(entries=[RequestEntryData([RequestEntityData("user", "alice")])])
    response = refused(NodeWorld().context(1), ApiKey.ALTER_CLIENT_QUOTAS, request, KafkaError(code, "no"))
    assert _not_active(ApiKey.ALTER_CLIENT_QUOTAS, response) is asks_again


def test_what_is_asked_while_the_controller_goes_is_answered_by_the_next_one(three: SeveralNodes) -> None:
    async def main() -> None:
        await three.start()
        via = three.passive()
        active = three.active()
        assert active is not None
        leaving = three.nodes.pop(active)
        stop = three.runtime.spawn(leaving.stop(), "stopping")
        for number in range(20):
            assert await three.create(via, f"t{number}") in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        await stop  # type: ignore[misc]
        assert three.active() not in (None, active)
        await three.everywhere(lambda node: len(node.broker.image.topics.by_name) == 20)

    three.run(main)


def test_a_clients_request_reaches_another_node_in_the_clients_version(three: SeveralNodes) -> None:
    """DeleteTopics names topics in a field that version 6 has not."""

    async def main() -> None:
        await three.start()
        via = three.passive()
        assert await three.create(via, "t") == ErrorCode.NONE
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)
        response = await three.nodes[via].controller.submit(QuorumController.delete_topics, request, 5)
        assert [(each.name, each.error_code) for each in response.responses] == [("t", ErrorCode.NONE)]

    three.run(main)


def test_without_any_controller_the_answer_is_an_error_in_time(three: SeveralNodes) -> None:
    three.settings["controller.socket.timeout.ms"] = "300"

    async def main() -> None:
        await three.start()
        alone = three.passive()
        node = three.nodes[alone]
        for other in [each for each in three.ids if each != alone]:
            replica = three.nodes[other].replica
            for listener in replica.listeners:
                listener.stop_accepting()
            await replica.runner.stop(1)
        with pytest.raises(KafkaError) as refused:
            submit: Any = node.replica.runner.controller.submit
            await node.controller._until_answered(object(), None, lambda: submit(lambda *_: None, None))
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT

    three.run(main)


def test_the_quorum_is_described_through_any_node(three: SeveralNodes) -> None:
    request = DescribeQuorumRequest(topics=[RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])

    async def main() -> None:
        await three.start()
        node = three.nodes[three.passive()]
        assert node.controller.describe_quorum() is None
        answer = await node.controller.forward(ApiKey.DESCRIBE_QUORUM, 2, request)
        assert answer.topics[0].partitions[0].leader_id == three.active()
        assert not _not_active(ApiKey.DESCRIBE_QUORUM, answer)
        answer.topics[0].partitions[0].error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert _not_active(ApiKey.DESCRIBE_QUORUM, answer)

    three.run(main)


def test_a_controller_that_hangs_is_asked_no_more_when_another_one_leads() -> None:
    """A paused process keeps its connections; a request would wait for its whole timeout."""
    asked: list[str] = []

    async def main(runtime: LoopRuntime) -> None:
        never = runtime.loop.create_future()

        async def ask(host: str) -> DescribeQuorumResponse:
            asked.append(host)
            if host == "hangs":
                runtime.loop.call_soon(elected)
                await never
            return DescribeQuorumResponse()

        def elected() -> None:
            runner.leader_endpoint, runner.leader_id = ("leads", 2), 2
            for told in replica.on_leader:
                told()

        runner = SimpleNamespace(leader_endpoint=("hangs", 1), leader_id=1)
        member = SimpleNamespace(controller=None)
        replica: Any = SimpleNamespace(
            runner=runner, member=member, stopped=False, on_leader=[], config=SimpleNamespace(node_id=3)
        )
        channels: Any = SimpleNamespace(to=lambda host, _port, _purpose: SimpleNamespace(ask=lambda *_, **__: ask(host)))
        link = ControllerLink(replica, channels, runtime, 600_000)
        async with asyncio.timeout(10):
            await link.forward(ApiKey.DESCRIBE_QUORUM, 2, DescribeQuorumRequest())
        assert asked == ["hangs", "leads"]
        await runtime.close()

    async def told() -> None:
        await main(LoopRuntime(asyncio.get_running_loop()))

    asyncio.run(told())
