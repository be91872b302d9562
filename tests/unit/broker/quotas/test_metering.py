from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, served
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Waiting
from tidelog.broker.api import Route
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.metering import Metering
from tidelog.broker.request import Context
from tidelog.broker.table import BROKER_APIS
from tidelog.model.errors import ErrorCode
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import encode_fetch_response, encode_produce_response, read_fetch, read_produce
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, response_header_is_flexible
from tidelog.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tidelog.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.fetch import FetchRequest, ReplicaState
from tidelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.protocol.structure import Message
from tidelog.replication.purgatory import ParkedAppend

MS = 1_000_000
HANDLER_NS = 100 * MS


class World:
    """Handlers that take a tenth of a second of the loop each time they run, and the throttle times of connections."""

    def __init__(self, **limits: float) -> None:
        self.now_ms = self.ns = 0
        self.muted: list[int] = []
        self.contexts: list[Context] = []
        self.answer: Callable[[Context, Any], Any] = lambda ctx, request: HeartbeatResponse()
        self.quotas = ClientQuotas()
        self.quotas.change({(("client-id", "c"),): limits})
        readers = {ApiKey.PRODUCE: read_produce, ApiKey.FETCH: read_fetch}
        rows: dict[int, Route] = {
            key: served(
                key,
                (0, 18),
                self._handler,
                read=readers.get(key),
                quota=BROKER_APIS[key].api.quota,
                between_brokers_from=BROKER_APIS[key].api.between_brokers_from,
            )
            for key in (
                ApiKey.PRODUCE,
                ApiKey.FETCH,
                ApiKey.HEARTBEAT,
                ApiKey.CREATE_TOPICS,
                ApiKey.ADD_PARTITIONS_TO_TXN,
            )
        }
        world = NodeWorld()
        self.metering = Metering(world.broker, self.quotas, rows, lambda: self.now_ms, lambda: self.ns)
        self.session = world.session()
        self.session.mute = self.muted.append

    def _handler(self, ctx: Context, request: Any) -> Any:
        self.work()
        self.contexts.append(ctx)
        return self.answer(ctx, request)

    def work(self) -> None:
        self.ns += HANDLER_NS

    def send(self, request: Message, version: int, client_id: str | None = "c") -> Any:
        api_key: int = request.API_KEY  # type: ignore[attr-defined]
        frame = encode_request(RequestHeader(api_key, version, 7, client_id), request)[4:]
        return self.metering.handle(self.session, memoryview(frame))

    def wait_in(self, parts: Any, api_key: int, version: int) -> int:
        frame = b"".join(parts)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        _, position = decode_response_header(frame[4:], response_header_is_flexible(api_key, version))
        answer = registry.response_class(api_key).decode(memoryview(frame)[4 + position :], version)
        wait_ms: int = answer.throttle_time_ms  # type: ignore[attr-defined]
        return wait_ms


HEARTBEAT = HeartbeatRequest(group_id="g", member_id="m")


def produce_of(size: int, acks: int = 1) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=bytes(size))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[partition])])


def produced(ctx: Context) -> list[Any]:
    return [encode_produce_response(ctx.correlation_id, ctx.api_version, ())]


class Acks(Waiting):
    lets_next_in = True

    def __init__(self, go_on: Callable[[], Any]) -> None:
        super().__init__(ParkedAppend(0, -1))
        self.go_on = go_on  # type: ignore[method-assign]


def test_time_on_the_loop_counts_until_the_client_has_to_wait() -> None:
    world = World(request_percentage=2.0)
    # 0.1 s in ten are one percent.
    assert [world.wait_in(world.send(HEARTBEAT, 4), ApiKey.HEARTBEAT, 4) for _ in range(4)] == [0, 0, 1000, 1000]
    assert world.muted == [1000, 1000]
    assert world.wait_in(world.send(HEARTBEAT, 4, "other"), ApiKey.HEARTBEAT, 4) == 0


def test_a_version_that_cannot_say_so_is_muted_all_the_same() -> None:
    world = World(request_percentage=0.5)
    assert b"".join(world.send(HEARTBEAT, 0)) == bytes.fromhex("00000006 00000007 0000")
    assert world.muted == [1000]


def test_all_steps_of_a_coroutine_count_and_nothing_between_them() -> None:
    world = World(request_percentage=2.5)
    loop = asyncio.new_event_loop()
    gate = loop.create_future()

    async def slowly() -> HeartbeatResponse:
        world.work()
        await gate
        world.work()
        return HeartbeatResponse(error_code=5)

    async def both() -> Any:
        world.answer = lambda ctx, request: slowly()
        answering = asyncio.ensure_future(world.send(HEARTBEAT, 4))
        await asyncio.sleep(0)
        world.ns += 3600 * 1000 * MS
        gate.set_result(None)
        return await answering

    parts = loop.run_until_complete(both())
    loop.close()
    # 0.3 s: three percent, of which 0.5 are too many.
    assert world.wait_in(parts, ApiKey.HEARTBEAT, 4) == 1000 and world.muted == [1000]


def test_a_coroutine_that_is_given_up_is_closed() -> None:
    world = World(request_percentage=2.5)
    closed: list[bool] = []

    class Never:
        def __await__(self) -> Any:
            yield self

    async def forever() -> HeartbeatResponse:
        try:
            await Never()
        finally:
            closed.append(True)
        raise AssertionError

    world.answer = lambda ctx, request: forever()
    coroutine = world.send(HEARTBEAT, 4)
    coroutine.send(None)
    coroutine.close()
    assert closed == [True] and world.muted == []


def test_a_failed_coroutine_is_answered_as_it_would_be_without_quotas() -> None:
    world = World(request_percentage=2.5)

    async def fails() -> HeartbeatResponse:
        raise RuntimeError("no")

    world.answer = lambda ctx, request: fails()
    with pytest.raises(StopIteration) as done:
        world.send(HEARTBEAT, 4).send(None)
    (frame,) = done.value.value
    assert HeartbeatResponse.decode(frame[9:], 4).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_produce_counts_with_all_its_bytes_and_the_longer_wait_is_told() -> None:
    world = World(producer_byte_rate=1000.0, request_percentage=0.5)
    world.answer = lambda ctx, request: produced(ctx)
    # 0.1 s of work are one percent: one window at most. 11,000 bytes wait for a second and what their frame adds.
    parts = world.send(produce_of(11_000), 12)
    assert world.wait_in(parts, ApiKey.PRODUCE, 12) == world.muted[0] == 1032


def test_without_an_answer_the_connection_is_muted_for_bytes_alone() -> None:
    world = World(producer_byte_rate=1000.0, request_percentage=0.5)
    world.answer = lambda ctx, request: NO_RESPONSE
    assert world.send(produce_of(100, acks=0), 12) is NO_RESPONSE
    assert world.muted == []
    assert world.send(produce_of(11_000, acks=0), 12) is NO_RESPONSE
    assert world.muted == [1163]


def test_a_produce_is_judged_when_its_records_are_in_the_log_not_when_they_are_safe() -> None:
    world = World(producer_byte_rate=1000.0)
    waiting = Acks(lambda: produced(world.contexts[-1]))
    world.answer = lambda ctx, request: waiting
    assert world.send(produce_of(100), 12) is waiting
    outgoing = world.send(produce_of(11_000), 12)
    assert world.muted == [1163]
    assert outgoing.parked is waiting.parked and outgoing.lets_next_in
    assert world.wait_in(outgoing.go_on(), ApiKey.PRODUCE, 12) == world.muted[0]
    assert len(world.muted) == 1


def test_a_waiting_produce_that_goes_on_as_a_coroutine_is_judged_once() -> None:
    world = World(producer_byte_rate=1000.0)

    async def checked() -> Any:
        return Acks(lambda: produced(world.contexts[-1]))

    world.answer = lambda ctx, request: checked()
    with pytest.raises(StopIteration) as stop:
        world.send(produce_of(11_000), 12).send(None)
    assert world.wait_in(stop.value.value.go_on(), ApiKey.PRODUCE, 12) == 1032
    assert world.muted == [1032]


def fetched(world: World, sizes: list[int]) -> Callable[[Context, Any], Any]:
    """A Fetch handler that finds ``sizes``, as far as it may send them."""

    def answer(ctx: Context, request: Any) -> Any:
        size = min(sizes.pop(0), request.max_bytes)
        wait_ms = ctx.fetch_quota.wait_ms(size) if ctx.fetch_quota is not None else 0
        parts, _ = encode_fetch_response(ctx.correlation_id, ctx.api_version, (), throttle_time_ms=wait_ms)
        return parts

    return answer


def test_a_fetch_asks_before_it_sends_and_may_not_ask_for_more_than_there_can_be() -> None:
    world = World(consumer_byte_rate=100.0)
    world.answer = fetched(world, [100_000, 1, 1])
    consumer = FetchRequest(replica_id=-1, max_bytes=50_000)
    assert world.wait_in(world.send(consumer, 12), ApiKey.FETCH, 12) == 0
    assert world.wait_in(world.send(consumer, 12), ApiKey.FETCH, 12) == world.muted[0] == 10
    world.now_ms = 12_000
    assert world.wait_in(world.send(consumer, 12), ApiKey.FETCH, 12) == 0


def test_a_fetch_whose_client_takes_too_much_time_is_put_off_too() -> None:
    world = World(request_percentage=0.5)
    world.answer = fetched(world, [10])
    assert world.wait_in(world.send(FetchRequest(replica_id=-1, max_bytes=100), 12), ApiKey.FETCH, 12) == 1000
    assert world.muted == [1000]


@pytest.mark.parametrize("version", [12, 17])
def test_followers_and_other_brokers_are_exempt(version: int) -> None:
    world = World(consumer_byte_rate=1.0, request_percentage=0.001)
    world.answer = fetched(world, [100_000, 100_000])
    follower = FetchRequest(max_bytes=1_000_000)
    if version >= 15:
        follower.replica_state = ReplicaState(replica_id=2, replica_epoch=5)
    else:
        follower.replica_id = 2
    for _ in range(2):
        assert world.wait_in(world.send(follower, version), ApiKey.FETCH, version) == 0
    world.answer = lambda ctx, request: AddPartitionsToTxnResponse()
    parts = world.send(AddPartitionsToTxnRequest(), 5)
    assert world.wait_in(parts, ApiKey.ADD_PARTITIONS_TO_TXN, 5) == 0
    assert world.muted == []
    assert world.wait_in(world.send(AddPartitionsToTxnRequest(), 3), ApiKey.ADD_PARTITIONS_TO_TXN, 3) == 1000


def test_what_the_controller_says_is_kept_and_its_client_muted() -> None:
    world = World(controller_mutation_rate=1.0)
    world.answer = lambda ctx, request: CreateTopicsResponse(throttle_time_ms=2500)
    assert world.wait_in(world.send(CreateTopicsRequest(), 7), ApiKey.CREATE_TOPICS, 7) == 2500
    assert world.muted == [2500]


def test_who_is_sent_away_is_not_told_to_wait() -> None:
    world = World(request_percentage=0.001, producer_byte_rate=0.001)
    world.answer = lambda ctx, request: CLOSE_CONNECTION
    assert world.send(produce_of(1000), 12) is CLOSE_CONNECTION
    assert world.muted == []
