"""Dead-letter queues of share groups, from a member's acknowledgement to the record in the topic (KIP-1191)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.share_talk import GROUP_RESOURCE, Member, create, produce
from tidelog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tidelog.records.batch import iter_headers
from tidelog.records.record import Record, iter_records
from tidelog.testing import Broker

RELEASE, REJECT, GAP = [2], [3], [0]
QUEUE = "errors.deadletterqueue."
TEXT = {"rejected": "Offset rejected by client.", "exhausted": "Offset delivery count exceeded the threshold."}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"share.coordinator.state.topic.num.partitions": 2, "group.share.assignment.interval.ms": 0}
    with Broker(config=config) as running:
        set_level(Talk(running.port), 2)
        yield running


def set_level(talk: Talk, level: int) -> None:
    """Finalizes share.version and waits until the broker knows."""
    kind = 1 if level == 2 else 2
    update = FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=kind)
    assert talk.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]), 1).error_code == 0


def configure(talk: Talk, kind: int, name: str, **configs: str) -> int:
    """Sets settings whose names begin with that of dead-letter queues, and waits until they are described. The error."""
    changes = [AlterableConfig(QUEUE + key.replace("_", "."), 0, value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    (answered,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    if answered.error_code:
        return int(answered.error_code)
    wanted = {change.name: change.value for change in changes}
    described = DescribeConfigsRequest(resources=[DescribeConfigsResource(kind, name, list(wanted))])
    for _ in range(1000):
        (result,) = talk.ask(described, 4).results
        if {row.name: row.value for row in result.configs} == wanted:
            return 0
        time.sleep(0.01)
    raise AssertionError(f"{wanted} does not show")


class Group:
    """A topic with a share group that reads it, and a name for its dead-letter topic."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name, self.queue = name, f"dlq.{name}"
        self.talk = Talk(broker.port)
        self.topic_id = create(self.talk, name)
        self.set_group(topic_name=self.queue)
        changes = [
            AlterableConfig("share.auto.offset.reset", 0, "earliest"),
            AlterableConfig("share.delivery.count.limit", 0, "2"),
        ]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=name, configs=changes)
        assert self.talk.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0
        self.broker = broker
        self.member = Member(broker, name)
        self.member.join(name)

    def set_group(self, **configs: str) -> None:
        assert configure(self.talk, GROUP_RESOURCE, self.name, **configs) == 0

    def with_queue(self, partitions: int = 1, *, consents: bool = True) -> Group:
        create(self.talk, self.queue, partitions)
        if consents:
            assert configure(self.talk, TOPIC_RESOURCE, self.queue, group_enable="true") == 0
        return self

    def produce(self, count: int) -> None:
        produce(self.talk, self.name, count)

    def given_up(self, count: int, partition: int = 0) -> list[Record]:
        """The dead letters, once there are that many."""
        found: list[Record] = []
        for _ in range(200):
            topics = [FetchTopic(topic=self.queue, partitions=[FetchPartition(partition, fetch_offset=len(found))])]
            request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics)
            (topic,) = self.talk.ask(request, 11).responses
            data = bytes(topic.partitions[0].records or b"")
            found += [record for header in iter_headers(data) for record in iter_records(data, header)]
            if len(found) >= count:
                break
            time.sleep(0.01)
        assert len(found) == count, found
        return found

    def start(self) -> int:
        """The start offset of the group, as stored."""
        groups = [DescribeShareGroupOffsetsRequestGroup(self.name, None)]
        (group,) = self.talk.ask(DescribeShareGroupOffsetsRequest(groups), 1).groups
        return int(group.topics[0].partitions[0].start_offset)

    def passes(self, offset: int) -> None:
        """Goes on until the stored start offset is there: then nothing below holds up the group."""
        for _ in range(1000):
            if self.start() >= offset:
                return
            self.produce(1)
            (taken,) = self.member.records(self.topic_id)
            assert self.member.acknowledge(self.topic_id, [(taken[0], taken[1], [1])]).error_code == 0
        raise AssertionError(f"the start is {self.start()}")

    def close(self) -> None:
        self.member.close()
        self.talk.close()


@pytest.fixture
def group(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Group]:
    made = Group(broker, f"t{abs(hash(request.node.name))}")
    yield made
    made.close()


def offsets(letters: list[Record]) -> list[tuple[int, int, str]]:
    """Offset, deliveries and cause."""
    found = [dict(letter.headers) for letter in letters]
    return [
        (int(each["__dlq.errors.offset"]), int(each["__dlq.errors.delivery.count"]), each["__dlq.errors.message"].decode())
        for each in found
    ]


def test_a_rejected_record_is_a_dead_letter_and_holds_nothing_up(group: Group) -> None:
    group.with_queue().produce(5)
    assert group.member.records(group.topic_id) == [(0, 4, 1)]
    assert group.member.acknowledge(group.topic_id, [(0, 4, [1, 3, 3, 0, 1])]).error_code == 0
    letters = group.given_up(2)
    assert offsets(letters) == [(1, 1, TEXT["rejected"]), (2, 1, TEXT["rejected"])]
    assert [(letter.key, letter.value) for letter in letters] == [(None, None)] * 2
    assert letters[0].headers == (
        ("__dlq.errors.topic", group.name.encode()),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"1"),
        ("__dlq.errors.group", group.name.encode()),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", TEXT["rejected"].encode()),
    )
    group.passes(5)


def test_a_record_that_was_delivered_too_often_is_a_dead_letter(group: Group) -> None:
    group.with_queue().produce(1)
    for count in (1, 2):
        assert group.member.records(group.topic_id) == [(0, 0, count)]
        assert group.member.acknowledge(group.topic_id, [(0, 0, RELEASE)]).error_code == 0
    assert offsets(group.given_up(1)) == [(0, 2, TEXT["exhausted"])]


def test_key_and_value_are_copied_where_the_group_asks_for_it(group: Group) -> None:
    group.with_queue().set_group(copy_record_enable="true")
    group.produce(3)
    assert group.member.records(group.topic_id) == [(0, 2, 1)]
    assert group.member.acknowledge(group.topic_id, [(1, 2, REJECT)]).error_code == 0
    assert [(letter.key, letter.value) for letter in group.given_up(2)] == [(None, b"v1"), (None, b"v2")]


@pytest.mark.parametrize("wrong", ["no consent", "no topic", "prefix"])
def test_what_cannot_be_written_is_lost_and_the_group_goes_on(group: Group, wrong: str) -> None:
    if wrong == "prefix":
        group.queue = f"x{group.name}"
        group.set_group(topic_name=group.queue)
    if wrong != "no topic":
        group.with_queue(consents=wrong != "no consent")
    group.produce(2)
    assert group.member.records(group.topic_id) == [(0, 1, 1)]
    assert group.member.acknowledge(group.topic_id, [(0, 1, REJECT)]).error_code == 0
    group.passes(2)
    if wrong != "no topic":
        assert group.given_up(0) == []


def test_the_topic_is_created_where_that_is_allowed(group: Group, broker: Broker) -> None:
    talk = group.talk
    assert configure(talk, BROKER_RESOURCE, "", auto_create_topics_enable="true") == 0
    group.produce(1)
    assert group.member.records(group.topic_id) == [(0, 0, 1)]
    assert group.member.acknowledge(group.topic_id, [(0, 0, REJECT)]).error_code == 0
    for _ in range(1000):
        (topic,) = talk.ask(MetadataRequest([MetadataRequestTopic(name=group.queue)]), 12).topics
        if topic.error_code == 0:
            break
        time.sleep(0.01)
    assert offsets(group.given_up(1)) == [(0, 1, TEXT["rejected"])]
    described = DescribeConfigsRequest(resources=[DescribeConfigsResource(TOPIC_RESOURCE, group.queue, [QUEUE + "group.enable"])])
    assert talk.ask(described, 4).results[0].configs[0].value == "true"
    assert configure(talk, BROKER_RESOURCE, "", auto_create_topics_enable="false") == 0


def test_without_the_feature_level_a_rejected_record_is_only_given_up(group: Group) -> None:
    group.with_queue()
    set_level(group.talk, 1)
    try:
        group.produce(1)
        assert group.member.records(group.topic_id) == [(0, 0, 1)]
        assert group.member.acknowledge(group.topic_id, [(0, 0, REJECT)]).error_code == 0
        group.passes(1)
        assert group.given_up(0) == []
    finally:
        set_level(group.talk, 2)


def test_a_queue_with_the_name_of_an_internal_topic_is_refused(group: Group) -> None:
    assert configure(group.talk, GROUP_RESOURCE, group.name, topic_name="__dlq") == 40
