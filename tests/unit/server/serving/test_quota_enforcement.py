"""A whole broker with quotas, real clients, and time that is moved: no waiting, no measuring of response times."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from tests.unit.server.several_nodes import SeveralNodes
from tidelog.broker.internal_topics import create_internal_topics
from tidelog.broker.ports import Asker
from tidelog.broker.quotas.mutations import submit_for
from tidelog.client.connection import ClientConnection
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.metadata.image import QuotaEntity
from tidelog.metrics import catalog
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tidelog.security.principal import ANONYMOUS
from tidelog.server.serving.connection import Connection
from tidelog.server.upkeep.node_metrics import on_loop
from tidelog.testing import Broker

ANY_CLIENT: QuotaEntity = (("client-id", None),)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def limit(broker: Broker, entity: QuotaEntity = ANY_CLIENT, **limits: float | None) -> None:
    """As AlterClientQuotas does; None takes the limit away."""
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]

    def decide(_: QuorumController, request: Any, now_ms: int) -> ControllerResult:
        records = [
            ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()
        ]
        return ControllerResult.of(None, records)

    broker._host.thread.ask(decide, None)


class Client:
    """A socket, and what is said on it."""

    def __init__(self, broker: Broker, client_id: str = "c") -> None:
        self._broker = broker
        self._wire = ClientConnection(client_id)
        self.socket = socket.create_connection(("127.0.0.1", broker.port), timeout=20)
        self.socket.sendall(self._wire.hello())
        assert self._wire.welcomed(self.receive()) is None

    def send(self, request: Any, highest: int | None = None) -> None:
        self.socket.sendall(self._wire.request(request, highest))

    def receive(self) -> Any:
        while True:
            data = self.socket.recv(1 << 16)
            assert data, "the broker closed the connection"
            answers = self._wire.receive(data)
            if answers:
                return answers[0]

    def ask(self, request: Any, highest: int | None = None) -> Any:
        self.send(request, highest)
        return self.receive()

    def produce(self, size: int, acks: int = 1) -> Any:
        batch = build_batch([RecordData(None, bytes(size))])
        partition = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[partition])])
        if acks:
            return self.ask(request, 12)
        self.send(request, 12)
        self._wire._waiting.pop()
        return None

    def fetch(self, offset: int, max_bytes: int = 1 << 20) -> Any:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, session_epoch=-1)
        request.topics = [FetchTopic(topic="t", partitions=[partition])]
        return self.ask(request, 12)

    def answered_without_time(self) -> bool:
        """Whether there is an answer though no time has passed: everything the broker had to do is done."""
        for _ in range(3):
            self._broker.advance(0)
        return bool(select.select([self.socket], [], [], 0)[0])

    @property
    def connection(self) -> Connection:
        return next(reversed(self._broker._host.thread.running().listeners[0].connections))


def records_of(response: Any) -> bytes:
    return b"".join(bytes(each.records or b"") for topic in response.responses for each in topic.partitions)


def test_without_quotas_requests_go_straight_to_the_dispatcher_also_after_there_were_some(broker: Broker) -> None:
    client = Client(broker)
    (listener,) = broker._host.thread.running().listeners
    straight = listener.dispatcher.handle
    assert client.connection.machine.handle == straight and client.connection.machine.session.mute is None
    limit(broker, producer_byte_rate=1.0)
    assert listener.metering is not None and client.connection.machine.handle == listener.metering.handle
    limit(broker, producer_byte_rate=None)
    assert client.connection.machine.handle == straight and client.connection.machine.session.mute is None
    # A limit of addresses is none of requests.
    limit(broker, (("ip", None),), connection_creation_rate=100.0)
    assert client.connection.machine.handle == straight


def test_a_producer_above_its_quota_is_answered_and_heard_again_when_its_time_is_over(broker: Broker) -> None:
    broker.create_topic("t")
    client = Client(broker)
    limit(broker, producer_byte_rate=1000.0)
    assert client.produce(5000).throttle_time_ms == 0
    wait_ms = client.produce(10_000).throttle_time_ms
    # 15,000 bytes and a little more, where 10,000 may be in ten seconds.
    assert 5000 < wait_ms < 6000
    client.send(MetadataRequest())
    assert not client.answered_without_time()
    node = broker._host.thread.running()
    seen = {family.metric: dict(family.samples) for family in broker._host.thread.call(lambda: on_loop(node.parts).collect())}
    assert seen[catalog.PRODUCE_BYTE_RATE][("", "c")] > 1000
    assert seen[catalog.PRODUCE_THROTTLE_TIME][("", "c")] == wait_ms
    broker.advance(wait_ms / 1000)
    assert client.receive().throttle_time_ms == 0
    assert len(broker.messages("t")) == 2
    assert Client(broker, "other").produce(5000).throttle_time_ms == 0


def test_batches_without_acknowledgement_are_all_there_though_their_producer_was_muted_and_went(broker: Broker) -> None:
    broker.create_topic("t")
    client = Client(broker)
    limit(broker, producer_byte_rate=100.0)
    for _ in range(20):
        client.produce(1000, acks=0)
    client.socket.close()
    for _ in range(100):
        broker.advance(60)
        if len(broker.messages("t")) == 20:
            break
    assert len(broker.messages("t")) == 20


def test_a_quota_that_is_raised_holds_at_once(broker: Broker) -> None:
    broker.create_topic("t")
    client = Client(broker)
    limit(broker, producer_byte_rate=10.0)
    assert client.produce(10_000).throttle_time_ms > 100_000
    client.send(MetadataRequest())
    assert not client.answered_without_time()
    limit(broker, producer_byte_rate=1_000_000.0)
    client.receive()
    assert client.produce(10_000).throttle_time_ms == 0


def test_a_consumer_above_its_quota_gets_nothing_then_all_that_follows(broker: Broker) -> None:
    broker.create_topic("t")
    for _ in range(6):
        broker.produce("t", b"x" * 500)
    client = Client(broker)
    limit(broker, consumer_byte_rate=100.0)
    first = records_of(client.fetch(0))
    # Not all: no more than ten seconds allow.
    assert 0 < len(first) <= 1000
    throttled = client.fetch(1)
    assert throttled.throttle_time_ms > 0 and records_of(throttled) == b"" and throttled.error_code == 0
    client.send(MetadataRequest())
    assert not client.answered_without_time()
    broker.advance(12)
    client.receive()
    second = client.fetch(1)
    assert second.throttle_time_ms == 0 and records_of(second) != b""


def test_a_session_goes_on_where_it_was_after_it_was_put_off(broker: Broker) -> None:
    broker.create_topic("t")
    broker.produce("t", b"x" * 500)
    client = Client(broker)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=0)
    request.topics = [FetchTopic(topic="t", partitions=[partition])]
    anew, opened = request.topics, client.ask(request, 12)
    assert opened.session_id
    limit(broker, consumer_byte_rate=60.0)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=1, session_id=opened.session_id
    )
    assert records_of(client.ask(request, 12)) == records_of(opened)
    request.session_epoch = 2
    throttled = client.ask(request, 12)
    assert (throttled.session_id, throttled.error_code, throttled.responses) == (opened.session_id, 0, [])
    assert throttled.throttle_time_ms > 0
    broker.advance(throttled.throttle_time_ms / 1000)
    request.topics, request.session_epoch, request.session_id = anew, 0, 0
    throttled = client.ask(request, 12)
    assert throttled.throttle_time_ms > 0 and throttled.session_id == 0, "nobody has been told what a session would begin with"
    broker.advance(12)
    request.topics, request.session_epoch, request.session_id = [], 3, opened.session_id
    assert records_of(client.ask(request, 12)) == records_of(opened)


def test_time_on_the_loop_is_limited_for_every_request(broker: Broker) -> None:
    client = Client(broker)
    limit(broker, (("user", "ANONYMOUS"),), request_percentage=0.0000001)
    assert client.ask(MetadataRequest()).throttle_time_ms == 1000
    broker.advance(1)
    assert client.ask(MetadataRequest()).throttle_time_ms == 1000
    broker.advance(1)
    limit(broker, (("user", "ANONYMOUS"),), request_percentage=None)
    assert client.ask(MetadataRequest()).throttle_time_ms == 0


def test_topics_beyond_the_quota_are_refused_and_their_client_is_muted(broker: Broker) -> None:
    client = Client(broker)
    limit(broker, controller_mutation_rate=1.0)

    def create(name: str, partitions: int) -> Any:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        return client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))

    assert create("a", 16).throttle_time_ms == 0
    refused = create("b", 1)
    assert refused.topics[0].error_code == 89 and 0 < refused.throttle_time_ms <= 5000
    client.send(MetadataRequest())
    assert not client.answered_without_time()
    broker.advance(5)
    client.receive()
    assert create("b", 1).topics[0].error_code == 0


def test_addresses_that_connect_too_fast_are_held_and_then_closed(broker: Broker) -> None:
    limit(broker, (("ip", "127.0.0.1"),), connection_creation_rate=1.0)
    served = [Client(broker) for _ in range(10)]
    held = socket.create_connection(("127.0.0.1", broker.port), timeout=20)
    broker.advance(0)
    (listener,) = broker._host.thread.running().listeners
    while not listener._held:
        broker.advance(0)
    assert len(listener.connections) == 10 and not select.select([held], [], [], 0)[0]
    broker.advance(1)
    assert held.recv(1) == b""
    served[0].ask(MetadataRequest())
    broker.advance(12)
    Client(broker).ask(MetadataRequest())


def test_nothing_is_lost_or_doubled_for_real_clients_that_are_throttled(broker: Broker) -> None:
    limit(broker, producer_byte_rate=2000.0, consumer_byte_rate=2000.0)
    told: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "client.id": "p", "linger.ms": 0, "throttle_cb": told.append}
    )
    sent = [f"{number}:".encode() + b"x" * 1000 for number in range(60)]
    for value in sent:
        producer.produce("t", value)
        producer.poll(0)
    while producer.flush(0.1):
        broker.advance(1)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "c",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "fetch.error.backoff.ms": 10,
        }
    )
    consumer.subscribe(["t"])
    received: list[bytes] = []
    while len(received) < len(sent):
        for message in consumer.consume(100, 0.1):
            assert message.error() is None
            received.append(message.value() or b"")
        broker.advance(1)
    consumer.close()
    assert received == sent
    # librdkafka also reports the end of a throttling, as 0.
    assert any(event.throttle_time > 0 for event in told)


def test_the_active_controller_counts_what_clients_of_other_brokers_ask_for(tmp_path: Path) -> None:
    """KIP-599: the buckets are where topics are made, whichever broker was asked."""

    three = SeveralNodes(tmp_path, offsets_topic_num_partitions="1", transaction_state_log_num_partitions="1")

    async def ask(node_id: int, client: str | None, name: str) -> tuple[int, int]:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        asker = Asker(ANONYMOUS, client, "127.0.0.1")
        broker = three.nodes[node_id].broker
        response = await submit_for(broker, asker, QuorumController.create_topics, request, version=7, strict=True)
        return response.topics[0].error_code, response.throttle_time_ms

    async def main() -> None:
        await three.start()
        entity = [EntityData(entity_type="client-id", entity_name="c")]
        record = ClientQuotaRecord(entity=entity, key="controller_mutation_rate", value=0.001)
        via, active = three.passive(), three.active()
        assert active is not None
        await three.nodes[active].controller.submit(lambda *_: ControllerResult.of(None, [record]), None)
        await three.everywhere(lambda node: bool(node.broker.image.quotas))
        assert await ask(via, "c", "a") == (ErrorCode.NONE, 0)
        for node_id in three.ids:
            error, wait_ms = await ask(node_id, "c", "b")
            assert error == ErrorCode.THROTTLING_QUOTA_EXCEEDED and wait_ms > 500_000
            assert await ask(node_id, "another", f"t{node_id}") == (ErrorCode.NONE, 0)
        # A broker that passes on what a client without a name asks is no client, whom a limit of any client would hold up.
        record = ClientQuotaRecord([EntityData("client-id", None)], "controller_mutation_rate", 0.001)
        await three.nodes[active].controller.submit(lambda *_: ControllerResult.of(None, [record]), None)
        await three.everywhere(lambda node: len(node.broker.image.quotas) == 2)
        for node_id in three.ids:
            for name in "x", "y":
                assert await ask(node_id, None, f"{name}{node_id}") == (ErrorCode.NONE, 0)
        # Nor when it makes the topics that coordinators need.
        await create_internal_topics(three.nodes[via].broker)
        assert not three.nodes[via].broker.creations_refused

    try:
        three.run(main)
    finally:
        three.close()
