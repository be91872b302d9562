"""DeadLetterQueue: which broker gets dead letters, what is tried again, and what is lost."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.broker.node_world import run
from tests.unit.broker.shares.hosted import Clock
from tests.unit.broker.shares.test_log_reading import partition
from tidelog.broker.shares.dead_letter_queue import TRIES, DeadLetterQueue
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE, PartitionImage, TopicImage, TopicsImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from tidelog.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tidelog.records.batch import iter_headers
from tidelog.records.record import Record, iter_records
from tidelog.replication.partition import Partition
from tidelog.replication.share.dead_letters import Cause, DeadLetter

QUEUE, QUEUE_ID = "dlq.t", Uuid(b"q" * 16)
LETTER = DeadLetter(0, 4, 1, Cause.REJECTED)
CONSENT = "errors.deadletterqueue.group.enable"


class Loop(Clock):
    """Whatever waits runs what was spawned."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def wait(self, parked: Any) -> None:
        self.run()
        assert parked.done

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Settings:
    """One group with a queue."""

    topic, copies = QUEUE, False

    def dead_letter_topic(self, group_id: str) -> str:
        return self.topic

    def copies_dead_letters(self, group_id: str) -> bool:
        return self.copies


class World:
    """Broker 1, with a source partition of fifteen records; broker 2 leads the queue and answers as the test says."""

    def __init__(self, *, exists: bool = True, **config: str) -> None:
        self.source = partition(5, 5, 5)
        self.runtime = Loop()
        self.answers: list[ErrorCode | KafkaError] = []
        self.asked: list[tuple[int, ProduceRequest]] = []
        self.created: list[ErrorCode] = []
        image = replace(EMPTY_IMAGE, configs={(TOPIC_RESOURCE, QUEUE): {CONSENT: "true"}})
        self.host: Any = SimpleNamespace(
            node_id=1, config=BrokerConfig.from_properties(config), image=image, runtime=self.runtime, access=None,
            others=SimpleNamespace(ask=self.ask), controller=SimpleNamespace(submit=self.submit),
        )  # fmt: skip
        if exists:
            self.create()
        self.settings = Settings()
        settings: Any = self.settings
        self.queue = DeadLetterQueue(self.host, settings)

    def create(self, leader: int = 2) -> None:
        parts = (PartitionImage((2,), (2,), leader, 0, 0),) * 2
        topic = TopicImage(QUEUE_ID, QUEUE, parts)
        self.host.image = replace(self.host.image, topics=TopicsImage({QUEUE_ID: topic}, {QUEUE: topic}))

    async def ask(self, broker: int, purpose: str, request: ProduceRequest, timeout_ms: int) -> ProduceResponse:
        self.asked.append((broker, request))
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, KafkaError):
            raise answer
        (topic,) = request.topic_data
        parts = [PartitionProduceResponse(index=each.index, error_code=answer) for each in topic.partition_data]
        return ProduceResponse(responses=[TopicProduceResponse(topic.name, topic.topic_id, parts)])

    async def submit(self, handler: object, request: Any, version: object, asker: object) -> CreateTopicsResponse:
        code = self.created.pop(0)
        if code is ErrorCode.NONE:
            self.create()
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=request.topics[0].name, error_code=code)])

    def by_id(self, topic_id: bytes, index: int) -> Partition | ErrorCode:
        return self.source if index == 0 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def write(self, letter: DeadLetter = LETTER) -> None:
        run(self.queue.write("g", self.source, letter))

    def sent(self) -> list[list[Record]]:
        """The records of each request."""
        batches = [bytes(request.topic_data[0].partition_data[0].records or b"") for _, request in self.asked]
        return [[record for header in iter_headers(data) for record in iter_records(data, header)] for data in batches]


def counted(world: World) -> tuple[int, int, int]:
    counts = world.queue.counts["g"]
    return counts.records, counts.sent, counts.failed


def test_dead_letters_go_to_the_leader_of_the_partition() -> None:
    world = World()
    world.write()
    ((broker, request),) = world.asked
    assert (broker, request.acks) == (2, -1)
    assert [dict(each.headers)["__dlq.errors.offset"] for each in world.sent()[0]] == [b"0", b"1", b"2", b"3", b"4"]
    assert counted(world) == (5, 1, 0)


def test_key_and_value_are_read_from_the_log_and_a_hole_has_neither() -> None:
    world = World()
    world.settings.copies = True
    world.write(DeadLetter(13, 16, 1, Cause.REJECTED))
    assert [each.value for each in world.sent()[0]] == [b"x" * 10, b"x" * 10, None, None]


def test_a_long_range_goes_in_rounds() -> None:
    world = World()
    world.host.image.configs[TOPIC_RESOURCE, QUEUE]["max.message.bytes"] = "500"
    world.write()
    assert sum(map(len, world.sent())) == 5 and len(world.asked) > 1
    assert counted(world) == (5, len(world.asked), 0)


def test_a_topic_that_takes_no_batch_gets_one_dead_letter_at_a_time_and_refuses_them_itself() -> None:
    world = World()
    world.settings.copies = True
    world.host.image.configs[TOPIC_RESOURCE, QUEUE]["max.message.bytes"] = "0"
    world.write()
    assert [[each.value for each in records] for records in world.sent()] == [[None]] * 5


@pytest.mark.parametrize(
    "passing",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, KafkaError(ErrorCode.NETWORK_EXCEPTION), KafkaError(ErrorCode.REQUEST_TIMED_OUT)],
)
def test_what_passes_is_tried_again_with_longer_pauses(passing: ErrorCode | KafkaError) -> None:
    world = World()
    world.answers = [passing] * 3
    world.write()
    assert len(world.asked) == 4 and world.runtime.slept == [1.0, 2.0, 4.0]
    assert counted(world) == (5, 4, 0)


def test_in_the_end_they_are_lost_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.answers = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 9
    world.write()
    assert len(world.asked) == TRIES and counted(world) == (0, TRIES, 1)
    assert "share group g: t-0, offsets 0 to 4, which it gave up, are not in a dead-letter topic" in caplog.text


def test_what_does_not_pass_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.answers = [ErrorCode.MESSAGE_TOO_LARGE]
    world.write()
    assert len(world.asked) == 1 and "broker 2 answered MESSAGE_TOO_LARGE for dlq.t-0\n" in caplog.text


def test_a_missing_topic_is_created_and_looked_for_again() -> None:
    world = World(exists=False, **{"errors.deadletterqueue.auto.create.topics.enable": "true"})
    world.created = [ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE]
    world.write()
    assert len(world.asked) == 1 and world.runtime.slept == [1.0, 2.0]


def test_a_topic_that_cannot_be_created_loses_them(caplog: pytest.LogCaptureFixture) -> None:
    world = World(exists=False, **{"errors.deadletterqueue.auto.create.topics.enable": "true"})
    world.created = [ErrorCode.POLICY_VIOLATION]
    world.write()
    assert not world.asked and "POLICY_VIOLATION" in caplog.text


def test_a_partition_without_a_leader_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.create(leader=-1)
    world.write()
    assert not world.asked and len(world.runtime.slept) == TRIES - 1 and "has no leader" in caplog.text
