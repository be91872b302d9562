"""Addresses of requests, and what is asked again: a cluster that is a function, a clock that is a number."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from tidelog.client.calls import TRANSACTION, Ask, Call, Coordinator, Each, Locate, Node, To, VersionOf
from tidelog.client.failures import NoConnection, NoRoute
from tidelog.client.routing import CONTROLLERS, Exchange, Moves, Pauses, Routing, Sleep, Together, VersionAt
from tidelog.client.settings import parse_settings
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_topics import CreateTopicsRequest
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from tidelog.protocol.messages.find_coordinator import (
    Coordinator as Row,
)
from tidelog.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

T = TypeVar("T")
A, B, C = ("a", 1), ("b", 2), ("c", 3)
BROKERS = MetadataResponse(brokers=[MetadataResponseBroker(node_id=each, host="abc"[each - 1], port=each) for each in (1, 2, 3)])
CREATE = CreateTopicsRequest()


class World:
    """Answers exchanges; ``at`` lists where requests went, ``now`` moves by what is slept."""

    def __init__(self, answer: Callable[[Exchange], Any], *, bootstrap: str = "a:1,b:2", controllers: bool = False, **given: str):
        settings = parse_settings({"bootstrap.servers": bootstrap, "retry.backoff.ms": "100", **given})
        self.now = 0.0
        self.at: list[tuple[tuple[str, int], str]] = []
        self.version = 6
        self._answer = answer
        self.routing = Routing(settings, lambda: self.now, random.Random(1), controllers=controllers)

    def ask(self, request: Any, to: To = None, **given: Any) -> Any:
        def call() -> Call[Any]:
            return (yield Ask(request, to, **given))

        return self.run(call())

    def run(self, call: Call[T]) -> T:
        return self._drive(self.routing.run(call))

    def _drive(self, moves: Moves[T]) -> T:
        try:
            move = next(moves)
            while True:
                try:
                    result = self._do(move)
                except Exception as error:
                    move = moves.throw(error)
                else:
                    move = moves.send(result)
        except StopIteration as end:
            return end.value

    def _do(self, move: Any) -> Any:
        match move:
            case Exchange():
                self.at.append((move.address, type(move.request).__name__.removesuffix("Request")))
                return self._answer(move)
            case VersionAt():
                return self.version
            case Sleep():
                self.now += move.seconds
                return None
            case Together():
                return [self._drive(each) for each in move.parts]


def down(addresses: Sequence[tuple[str, int]] = ()) -> Callable[[Exchange], Any]:
    """A cluster of three, of which these cannot be reached."""

    def answer(move: Exchange) -> Any:
        if move.address in addresses:
            raise NoConnection(f"{move.address[0]} cannot be reached", reason="refused")
        return BROKERS if isinstance(move.request, MetadataRequest) else move.address

    return answer


def test_bootstrap_servers_are_tried_in_turn_and_the_one_that_answered_is_kept() -> None:
    world = World(down([A]))
    assert [world.ask(CREATE), world.ask(CREATE)] == [B, B]
    assert [where for where, _ in world.at] == [A, B, B]


def test_where_no_server_answers_all_are_named() -> None:
    with pytest.raises(NoConnection, match=r"No broker answers at a:1 \(refused\), b:2 \(refused\)\. Is it running"):
        World(down([A, B])).ask(CREATE)


def test_a_single_server_that_is_something_else_says_so_itself() -> None:
    def answer(move: Exchange) -> Any:
        raise NoConnection("a:1 answers HTTP", reached=True)

    with pytest.raises(NoConnection, match=r"^a:1 answers HTTP$"):
        World(answer, bootstrap="a:1").ask(CREATE)


def test_brokers_known_from_metadata_take_over_when_bootstrap_servers_are_gone() -> None:
    gone: list[tuple[str, int]] = []
    world = World(down(gone))
    world.ask(MetadataRequest())
    gone += [A, B]
    assert world.ask(CREATE) == C


def test_a_node_is_looked_up_once() -> None:
    world = World(down())
    assert [world.ask(CREATE, Node(3)), world.ask(CREATE, Node(3))] == [C, C]
    assert world.at == [(A, "Metadata"), (C, "CreateTopics"), (C, "CreateTopics")]
    with pytest.raises(NoRoute, match="has no broker 7; it has 1, 2, 3"):
        world.ask(CREATE, Node(7))


def test_a_node_that_went_is_looked_up_again() -> None:
    gone = [C]
    world = World(down(gone))
    world.ask(MetadataRequest())
    with pytest.raises(NoConnection):
        world.ask(CREATE, Node(3))
    gone.clear()
    assert world.ask(CREATE, Node(3)) == C
    assert world.at[-2:] == [(A, "Metadata"), (C, "CreateTopics")]


@pytest.mark.parametrize(("request_", "sent"), [(MetadataRequest(), 2), (CREATE, 1)])
def test_only_what_reads_is_asked_again_when_the_connection_ends(request_: Any, sent: int) -> None:
    def answer(move: Exchange) -> Any:
        raise NoConnection("ended", reached=True, sent=True)

    world = World(answer)
    with pytest.raises(NoConnection, match="ended"):
        world.ask(request_)
    assert len(world.at) == sent


def coordinated(*codes: int) -> Callable[[Exchange], Any]:
    """The coordinator is node 3; the request is answered with these codes in turn, then with NONE."""
    left = list(codes)

    def answer(move: Exchange) -> Any:
        if isinstance(move.request, FindCoordinatorRequest):
            row = Row(key="g", node_id=3, host="c", port=3)
            return FindCoordinatorResponse(coordinators=[row]) if move.request.coordinator_keys else row
        return left.pop(0) if left else 0

    return answer


def test_a_coordinator_is_looked_up_again_when_it_has_moved() -> None:
    world = World(coordinated(ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.INVALID_GROUP_ID))
    assert world.ask(DeleteGroupsRequest(), Coordinator("g"), code_of=int) == ErrorCode.INVALID_GROUP_ID
    assert [where for where, _ in world.at] == [A, C] * 3
    world.ask(DeleteGroupsRequest(), Coordinator("g"), code_of=int)
    assert world.at[-1] == (C, "DeleteGroups")
    assert len(world.at) == 7


def test_when_the_time_is_over_the_last_answer_counts() -> None:
    world = World(lambda move: ErrorCode.NOT_COORDINATOR, **{"default.api.timeout.ms": "1000"})
    assert world.ask(DeleteGroupsRequest(), code_of=int) == ErrorCode.NOT_COORDINATOR
    assert world.now == pytest.approx(1.0)


def test_brokers_before_several_coordinators_are_asked_for_one() -> None:
    def answer(move: Exchange) -> Any:
        assert (move.request.key, move.request.key_type) == ("t", TRANSACTION)
        return FindCoordinatorResponse(node_id=3, host="c", port=3)

    def locate() -> Call[Any]:
        return (yield Locate(Coordinator("t", TRANSACTION)))

    world = World(answer)
    world.version = 3
    assert world.run(locate()) == (3, "c", 3)


def test_a_coordinator_that_is_refused_is_an_error_with_the_code() -> None:
    refused = FindCoordinatorResponse(coordinators=[Row(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="no")])
    with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED: no"):
        World(lambda move: refused).ask(DeleteGroupsRequest(), Coordinator("g"))


def test_calls_together_and_versions() -> None:
    def one(key: int, to: To) -> Call[Any]:
        return (yield VersionOf(key, to))

    def both() -> Call[Any]:
        return (yield Each([one(ApiKey.METADATA, None), one(ApiKey.FETCH, None)]))

    assert World(down()).run(both()) == [6, 6]


def controllers(active: int, code: int = 0) -> Callable[[Exchange], Any]:
    rows = [DescribeClusterBroker(broker_id=each, host="abc"[each - 1], port=each) for each in (1, 2, 3)]

    def answer(move: Exchange) -> Any:
        if isinstance(move.request, DescribeClusterRequest):
            assert move.request.endpoint_type == CONTROLLERS
            return DescribeClusterResponse(controller_id=active, brokers=rows, error_code=code, error_message="odd")
        return move.address

    return answer


def test_any_controller_leads_to_the_active_one_and_to_each_other() -> None:
    world = World(controllers(2), controllers=True)
    assert [world.ask(CREATE), world.ask(CREATE), world.ask(CREATE, Node(3))] == [B, B, C]
    assert [what for _, what in world.at] == ["DescribeCluster", "CreateTopics", "CreateTopics", "CreateTopics"]


@pytest.mark.parametrize(
    ("active", "code", "says"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE, "a:1, b:2 is a listener of a broker"),
        (-1, 0, "have no leader at present"),
        (2, ErrorCode.UNKNOWN_SERVER_ERROR, "odd"),
    ],
)
def test_where_no_controller_can_be_asked_the_reason_is_said(active: int, code: int, says: str) -> None:
    with pytest.raises(KafkaError, match=says):
        World(controllers(active, code), controllers=True).ask(CREATE)


def test_pauses_double_up_to_the_longest_and_end_with_the_time() -> None:
    now = 0.0
    settings = parse_settings({"bootstrap.servers": "a:1", "retry.backoff.ms": "100", "retry.backoff.max.ms": "300"})
    pauses = Pauses(settings, 1000, lambda: now, random.Random(7))
    found = []
    while (pause := pauses.next()) is not None:
        found.append(pause)
        now += pause
    for pause, exact in zip(found[:-1], (0.1, 0.2, 0.3, 0.3), strict=False):
        assert 0.8 * exact <= pause <= 1.2 * exact
    assert now == pytest.approx(1.0)
    assert Pauses(settings, 1000, lambda: 0.0, random.Random(7), 10).next() == pytest.approx(0.01, rel=0.2)
