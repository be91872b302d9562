from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, refused
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.request import Session
from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.acl import AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, response_header_is_flexible
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.security.principal import KafkaPrincipal, with_groups
from tidelog.server.cluster import controller_link
from tidelog.server.cluster.controller_link import ControllerLink, _not_active
from tidelog.server.runtime import LoopRuntime


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


AUTHORIZED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
"""The nodes themselves are anonymous; alice is not."""


def may(operation: AclOperation, topic: str, host: str = "*") -> AclCreation:
    prefixed, allow = PatternType.PREFIXED, PermissionType.ALLOW
    return AclCreation(ResourceType.TOPIC, topic, prefixed, "User:alice", host, operation, allow)


async def asked(world: SeveralNodes, via: int, request: Any, version: int, host: str = "10.0.0.7", name: str = "alice") -> Any:
    """The answer of a broker to alice, as from its listener."""
    return await asked_as(world, via, KafkaPrincipal("User", name), request, version, host)


async def asked_as(world: SeveralNodes, via: int, who: KafkaPrincipal, request: Any, version: int, host: str = "10.0.0.7") -> Any:
    """The answer of a broker to any client."""
    broker = world.nodes[via].broker
    session = Session("PLAINTEXT", host, who)
    frame = encode_request(RequestHeader(request.API_KEY, version, 1, "console"), request)[4:]
    outgoing: Any = Dispatcher(broker, broker.apis).handle(session, memoryview(frame))
    parts = await outgoing if isinstance(outgoing, Coroutine) else outgoing
    body = b"".join(parts)[4:]
    _, position = decode_response_header(body, response_header_is_flexible(request.API_KEY, version))
    return registry.response_class(request.API_KEY).decode(body[position:], version)


async def creates(world: SeveralNodes, via: int, name: str, host: str = "10.0.0.7") -> int:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1)], timeout_ms=30_000)
    return int((await asked(world, via, request, 7, host)).topics[0].error_code)


async def permit(world: SeveralNodes, via: int, *creations: AclCreation) -> None:
    answer = await asked(world, via, CreateAclsRequest(creations=list(creations)), 3, name="ANONYMOUS")
    assert [each.error_code for each in answer.results] == [ErrorCode.NONE] * len(creations)
    await world.everywhere(lambda node: len(node.broker.image.acls) >= len(creations))


class Late:
    """A node that reads the metadata log a little later than the others."""

    def __init__(self, answers: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.failed = answers.failed
        self._answers = answers
        self._loop = loop

    def answered(self, request_id: int, message: object) -> None:
        self._loop.call_later(0.05, self._answers.answered, request_id, message)


def test_acls_that_a_broker_forwarded_are_in_its_image_when_it_answers(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, given=AUTHORIZED)

    async def main() -> None:
        await world.start()
        via = world.passive()
        broker = world.nodes[via].broker
        peers: Any = world.nodes[via].replica.runner._peers
        peers._answers = Late(peers._answers, world.runtime.loop)
        for number in range(3):
            request = CreateAclsRequest(creations=[may(AclOperation.CREATE, f"t{number}")])
            answer = await asked(world, via, request, 3, name="ANONYMOUS")
            assert [each.error_code for each in answer.results] == [ErrorCode.NONE]
            assert [each.resource_name for each in broker.image.acls.values()] == [f"t{number}"]
            wanted = DeleteAclsFilter(ResourceType.TOPIC, f"t{number}", PatternType.PREFIXED, None, None, AclOperation.ANY, 1)
            answer = await asked(world, via, DeleteAclsRequest(filters=[wanted]), 3, name="ANONYMOUS")
            assert len(answer.filter_results[0].matching_acls) == 1
            assert not broker.image.acls

    world.run(main)
    world.close()


def test_an_image_that_lags_behind_does_not_hold_an_answer_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(controller_link, "APPLIED_S", 0.01)
    world = SeveralNodes(tmp_path, controllers=1)

    async def main() -> None:
        await world.start()
        link = world.nodes[1].controller
        await link.until_applied(lambda image: False)
        await link.until_applied(lambda image: 1 in image.brokers)

    world.run(main)
    world.close()


def test_the_rights_of_the_client_decide_and_not_those_of_its_broker(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=2, given=AUTHORIZED)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    async def main() -> None:
        await world.start()
        via = world.passive()
        assert await creates(world, via, "mine") == denied
        await permit(world, via, may(AclOperation.CREATE, "mine", "10.0.0.7"), may(AclOperation.DESCRIBE, "mine"))
        for each in (via, 1):
            assert await creates(world, each, f"mine-{each}") == ErrorCode.NONE
            assert await creates(world, each, f"other-{each}") == denied
            assert await creates(world, each, f"mine-{each}-far", host="10.0.0.8") == denied
        limit = AlterClientQuotasRequest(entries=[RequestEntryData([RequestEntityData("user", "alice")], [])])
        for each in (via, 1):
            answer = await asked(world, each, limit, 1)
            assert [entry.error_code for entry in answer.entries] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
        topics = [MetadataRequestTopic(name="mine-too")]
        await world.until(lambda: "mine-1" in world.nodes[via].broker.image.topics.by_name)
        answer = await asked(world, via, MetadataRequest(topics=topics), 13)
        assert [each.error_code for each in answer.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
        await world.everywhere(
            lambda node: set(node.broker.image.topics.by_name) == {"mine-1", f"mine-{via}", "mine-too"},
        )

    world.run(main)
    world.close()


def test_the_groups_and_roles_of_the_client_count_at_the_controller(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=2, given=AUTHORIZED)
    denied, literal, allow = ErrorCode.TOPIC_AUTHORIZATION_FAILED, PatternType.LITERAL, PermissionType.ALLOW
    alice = KafkaPrincipal("User", "alice")

    def who(*groups: str) -> KafkaPrincipal:
        return with_groups(alice, frozenset(groups))

    async def create(via: int, name: str, *groups: str) -> int:
        request = CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1)], timeout_ms=30_000)
        return int((await asked_as(world, via, who(*groups), request, 7)).topics[0].error_code)

    async def main() -> None:
        await world.start()
        via = world.passive()
        by_group = may(AclOperation.CREATE, "g").replace(principal="Group:staff")
        by_role = may(AclOperation.CREATE, "r").replace(principal="Role:makers")
        out = AclCreation(ResourceType.TOPIC, "g-out", literal, "Group:contractors", "*", AclOperation.ALL, PermissionType.DENY)
        member = AclCreation(ResourceType.USER, "Role:makers", literal, "Group:staff", "*", AclOperation.ALL, allow)
        await permit(world, via, by_group, by_role, out, member)
        for each in (via, 1):
            assert await create(each, f"g-{each}") == await create(each, f"r-{each}") == denied
            assert await create(each, f"g-{each}", "Group:staff") == ErrorCode.NONE
            assert await create(each, f"r-{each}", "Group:staff") == ErrorCode.NONE
            assert await create(each, "g-out", "Group:staff", "Group:contractors") == denied
        await world.everywhere(
            lambda node: set(node.broker.image.topics.by_name) == {f"{kind}-{each}" for kind in "gr" for each in (via, 1)},
        )

    world.run(main)
    world.close()


def test_no_request_passes_unchecked_while_the_controller_moves(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, given=AUTHORIZED)

    async def main() -> None:
        await world.start()
        await permit(world, 1, may(AclOperation.CREATE, "mine"))
        active = world.active()
        assert active is not None
        expected: set[str] = set()

        async def ask(via: int) -> None:
            number = 0
            while number < 3 or world.active() in (None, active):
                name = f"mine-{via}-{number}"
                expected.add(name)
                refused, code = await asyncio.gather(creates(world, via, f"other-{via}-{number}"), creates(world, via, name))
                assert refused == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
                number += 1

        stopping = world.runtime.spawn(world.nodes.pop(active).stop(), "stopping")
        await asyncio.gather(*map(ask, list(world.nodes)))
        await stopping  # type: ignore[misc]
        await world.everywhere(lambda node: set(node.broker.image.topics.by_name) == expected)

    world.run(main)
    world.close()


def test_a_broker_without_cluster_action_tells_its_client_only_that_something_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, given=AUTHORIZED)

    async def main() -> None:
        await world.start()
        deny: Any = lambda client, operation, *rest: operation != AclOperation.CLUSTER_ACTION  # noqa: E731
        refusing = SimpleNamespace(allows=deny, allows_any=deny)
        (listener,) = world.nodes[1].replica.listeners
        side: Any = listener.dispatcher._node
        side.access = refusing
        assert await creates(world, 2, "mine") == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "does not take a client's request from this broker: CLUSTER_AUTHORIZATION_FAILED" in caplog.text

    world.run(main)
    world.close()
