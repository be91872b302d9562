"""``tidelog why`` on a real broker: each cause is made with a real client, and is the one that is named."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.unit.cli.running_node import running_node
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.main import main
from tidelog.client.calls import Coordinator
from tidelog.console.causes import diagnose
from tidelog.console.collecting import sample
from tidelog.console.group_facts import GroupFacts
from tidelog.console.verdict import Verdict
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


class World:
    """A broker, a topic and a group for one test."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers = servers
        self.topic = f"{name}-topic"
        self.group = f"{name}-group"
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.consumers: list[Consumer] = []

    def create(self, partitions: int = 1, **settings: str) -> None:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.admin.create_topics([NewTopic(self.topic, partitions, 1, config=config)])[self.topic].result(20)

    def produce(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(count):
            producer.produce(self.topic, str(number), partition=0)
        assert producer.flush(20) == 0

    def consumer(self, **settings: Any) -> Consumer:
        own = {key.replace("_", "."): value for key, value in settings.items()}
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "client.id": "app",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **own,
            }
        )
        self.consumers.append(consumer)
        return consumer

    def reader(self, count: int, **settings: Any) -> Consumer:
        """A member that has read ``count`` records and committed nothing."""
        consumer = self.consumer(**settings)
        consumer.subscribe([self.topic])
        assert len(consumer.consume(count, 30)) == count
        return consumer

    def commit(self, consumer: Consumer, offset: int) -> None:
        (done,) = consumer.commit(offsets=[TopicPartition(self.topic, 0, offset)], asynchronous=False)
        assert done.error is None

    def store(self, offset: int) -> None:
        """An offset of a group without members."""
        wanted = ConsumerGroupTopicPartitions(self.group, [TopicPartition(self.topic, 0, offset)])
        (future,) = self.admin.alter_consumer_group_offsets([wanted]).values()
        future.result(20)

    def verdict(self, meanwhile: Callable[[], object] = lambda: None) -> Verdict:
        """The verdict from two looks, five seconds apart by their own account."""
        with AdminSession(self.servers) as session:
            first = session.run(sample(self.group, 0))
            meanwhile()
            return diagnose(GroupFacts(self.group, first, session.run(sample(self.group, 5000))))

    def cause(self, meanwhile: Callable[[], object] = lambda: None) -> str | None:
        verdict = self.verdict(meanwhile)
        return None if verdict.primary is None else verdict.primary.cause

    def notes(self) -> list[str]:
        verdict = self.verdict()
        assert verdict.primary is None
        return [each.cause for each in verdict.notes]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("why")
    with running_node(Path(directory), **{"group.initial.rebalance.delay.ms": "0"}) as servers:
        yield servers


@pytest.fixture
def world(broker: str, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(broker, request.node.name.replace("[", "-").replace("]", ""))
    yield world
    for consumer in world.consumers:
        consumer.close()


def why(world: World, *arguments: str) -> Any:
    return CliRunner().invoke(main, ["why", world.group, "--bootstrap-server", world.servers, "--seconds", "0", *arguments])


def test_a_group_that_has_read_everything_is_fine(world: World) -> None:
    world.create()
    world.produce(10)
    world.commit(world.reader(10), 10)
    result = why(world)
    assert result.exit_code == 0, result.output
    assert "Nothing is wrong." in result.output
    assert "the coordinator answers; " in result.output.partition("Checked and fine: ")[2]


def test_g1_the_application_has_stopped(world: World) -> None:
    world.create()
    world.produce(10)
    consumer = world.reader(3)
    world.commit(consumer, 3)
    consumer.close()
    world.consumers.clear()
    result = why(world)
    assert result.exit_code == 3, result.output
    assert "Cause (G1): the group has no members" in result.output
    found = json.loads(why(world, "--json").output)
    assert (found["primary"]["cause"], found["lag"], found["state"]) == ("G1", 7, "Empty")


def test_g2_a_consumer_that_assigns_itself(world: World) -> None:
    world.create()
    world.produce(10)
    consumer = world.consumer()
    consumer.assign([TopicPartition(world.topic, 0, 0)])
    consumer.consume(3, 20)
    world.commit(consumer, 3)
    assert world.notes() == ["G2"]


def test_g4_a_member_that_commits_no_more(world: World) -> None:
    world.create()
    world.produce(10)
    world.commit(world.reader(3), 3)
    verdict = world.verdict()
    assert verdict.primary is not None
    assert verdict.primary.cause == "G4"
    assert "read by app at 127.0.0.1" in verdict.primary.evidence[1]


def test_g7_more_members_than_partitions(world: World) -> None:
    world.create()
    settings = {"group_protocol": "consumer"}
    for _ in range(2):
        consumer = world.consumer(**settings)
        consumer.subscribe([world.topic])
    with AdminSession(world.servers) as session:
        while True:
            for consumer in world.consumers:
                consumer.poll(0.1)
            found = session.run(sample(world.group, 0)) if world.consumers[0].memberid() else None
            if found is not None and found.state == "Stable" and len(found.members) == 2:
                break
    assert world.notes() == ["G7"]


@pytest.mark.parametrize("protocol", ["consumer"])
def test_g8_a_topic_that_does_not_exist(world: World, protocol: str) -> None:
    world.create()
    consumer = world.consumer(group_protocol=protocol)
    consumer.subscribe([world.topic[:-1]])
    with AdminSession(world.servers) as session:
        while not (consumer.poll(0.1) or consumer.memberid()):
            pass
        while not session.run(sample(world.group, 0)).members:
            consumer.poll(0.1)
    verdict = world.verdict()
    assert verdict.primary is not None
    assert verdict.primary.cause == "G8"
    assert f"there is {world.topic}" in verdict.primary.evidence[0]


def test_g12_a_member_that_never_commits(world: World) -> None:
    world.create()
    world.produce(10)
    world.reader(10)
    assert world.notes() == ["G12"], "with auto.offset.reset=latest it would have had nothing to read"
    assert world.cause(lambda: world.produce(10)) == "G12"


def test_g13_offsets_that_wait_for_a_transaction(world: World) -> None:
    world.create()
    world.produce(10)
    consumer = world.reader(3)
    world.commit(consumer, 3)
    producer = Producer({"bootstrap.servers": world.servers, "transactional.id": "exactly-once"})
    producer.init_transactions(30)
    producer.begin_transaction()
    offsets = [TopicPartition(world.topic, 0, 5)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
    verdict = world.verdict()
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.contributing) == ("G13", ())
    assert verdict.primary.evidence == (f"{world.topic}-0: committed 3, 7 records behind",)
    producer.commit_transaction(30)
    assert world.cause() == "G4"


def test_the_marker_behind_the_last_record_is_no_lag(world: World) -> None:
    """A program that commits the offset behind each record stays one behind the end of a transactional topic."""
    world.create()
    producer = Producer({"bootstrap.servers": world.servers, "transactional.id": "marked"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(world.topic, b"one", partition=0)
    producer.commit_transaction(30)
    world.commit(world.reader(1, isolation_level="read_committed"), 1)
    verdict = world.verdict()
    assert (verdict.primary, verdict.lag) == (None, 0)
    producer.begin_transaction()
    producer.produce(world.topic, b"two", partition=0)
    producer.commit_transaction(30)
    assert world.cause() == "G4", "a record and two markers"


def test_p2_too_few_replicas_to_write(world: World) -> None:
    world.create(min_insync_replicas="2")
    world.store(0)
    assert world.cause() == "P2"


def test_p4_a_transaction_that_stays_open(world: World) -> None:
    world.create()
    world.produce(3)
    producer = Producer({"bootstrap.servers": world.servers, "transactional.id": "slow-payments"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(world.topic, b"held", partition=0)
    producer.flush(20)
    world.commit(world.reader(3, isolation_level="read_committed"), 3)
    verdict = world.verdict()
    assert verdict.primary is not None
    assert verdict.primary.cause == "P4"
    assert "slow-payments, Ongoing" in verdict.primary.evidence[0]
    assert verdict.primary.command == "tidelog transactions describe --transactional-id slow-payments"
    producer.abort_transaction(30)
    assert world.cause() != "P4"


def test_p5_records_that_are_gone(world: World) -> None:
    world.create()
    world.produce(10)
    world.store(3)
    (future,) = world.admin.delete_records([TopicPartition(world.topic, 0, 8)]).values()
    future.result(20)
    verdict = world.verdict()
    assert verdict.primary is not None
    assert verdict.primary.evidence[0].endswith("committed 3, the log begins at 8")
    assert "5 records that were not read" in verdict.primary.advice


def test_p5_an_offset_beyond_the_end(world: World) -> None:
    world.create()
    world.produce(2)
    world.store(999)
    verdict = world.verdict()
    assert verdict.primary is not None
    assert (verdict.primary.cause, verdict.primary.evidence[0][-32:]) == ("P5", "committed 999, the log ends at 2"[-32:])


def test_r1_a_member_that_is_slower_than_its_producers(world: World) -> None:
    world.create()
    world.produce(10)
    consumer = world.reader(3)
    world.commit(consumer, 3)
    assert world.cause(lambda: (world.produce(10), world.commit(consumer, 4))) == "R1"


def test_r2_a_member_that_catches_up_is_no_alarm(world: World) -> None:
    world.create()
    world.produce(10)
    consumer = world.reader(3)
    world.commit(consumer, 3)
    verdict = world.verdict(lambda: world.commit(consumer, 8))
    assert (verdict.primary, [each.cause for each in verdict.notes]) == (None, ["R2"])


def test_a_group_that_is_not_there_is_an_error(world: World) -> None:
    result = why(world)
    assert result.exit_code == 1
    assert f"Group {world.group} not found" in result.stderr
    assert "a topic of their subscription exists" in result.stderr


def test_a_share_group_with_a_silent_worker_begins_at_latest(world: World) -> None:
    world.create()
    world.produce(3)
    member = ShareGroupHeartbeatRequest(group_id=world.group, member_id="m", member_epoch=0, subscribed_topic_names=[world.topic])
    with AdminSession(world.servers) as session:
        assert session.ask(member, Coordinator(world.group)).error_code == 0

        def initialized() -> bool:
            found = session.run(sample(world.group, 0))
            return all(part.share is not None and part.share.initialized for part in found.partitions.values())

        deadline = time.monotonic() + 30
        while not initialized():
            assert time.monotonic() < deadline
    result = why(world)
    assert result.exit_code == 3, result.output
    assert "Cause (S6)" in result.output and f"{world.topic}-0: offsets 0 to 3" in result.output
    assert "name their pages with --endpoint" in result.output
