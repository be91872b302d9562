"""Commits and what is read back, at every version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tidelog.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from tidelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tidelog.testing import Broker

NO_TOPIC = b"?" * 16


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("t", partitions=2)
        yield running


@pytest.fixture
def topic_id(talk: Talk) -> bytes:
    return bytes(talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics[0].topic_id)


def commit(talk: Talk, group: str, version: int, topic_id: bytes, offset: int = 42) -> dict[tuple[str, int], int]:
    """Commits to a partition that exists, one that does not, and a topic that does not; the errors."""

    def partition(index: int) -> OffsetCommitRequestPartition:
        made = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="note")
        if version >= 6:
            made.committed_leader_epoch = 0
        return made

    if version >= 10:
        topics = [
            OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition(1), partition(7)]),
            OffsetCommitRequestTopic(topic_id=NO_TOPIC, partitions=[partition(0)]),
        ]
    else:
        topics = [
            OffsetCommitRequestTopic(name="t", partitions=[partition(1), partition(7)]),
            OffsetCommitRequestTopic(name="none", partitions=[partition(0)]),
        ]
    answer = talk.ask(OffsetCommitRequest(group_id=group, topics=topics), version)
    names = ["t", "none"]
    return {
        (name, partition.partition_index): partition.error_code
        for name, topic in zip(names, answer.topics, strict=True)
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_is_refused_only_where_there_is_no_partition(talk: Talk, topic_id: bytes, version: int) -> None:
    assert commit(talk, f"c{version}", version, topic_id) == {
        ("t", 1): 0,
        ("t", 7): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): E.UNKNOWN_TOPIC_ID if version >= 10 else E.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("version", range(1, 8))
def test_one_groups_offsets_are_read_back(talk: Talk, topic_id: bytes, version: int) -> None:
    commit(talk, "one", 9, topic_id)
    request = OffsetFetchRequest(group_id="one", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])])
    answer = talk.ask(request, version)
    assert answer.error_code == 0
    got = {p.partition_index: (p.committed_offset, p.metadata, p.error_code) for p in answer.topics[0].partitions}
    assert got == {0: (-1, "", 0), 1: (42, "note", 0)}
    if version >= 5:
        assert {p.partition_index: p.committed_leader_epoch for p in answer.topics[0].partitions} == {0: -1, 1: 0}
    if version >= 2:
        everything = talk.ask(OffsetFetchRequest(group_id="one", topics=None), version)
        assert [(topic.name, len(topic.partitions)) for topic in everything.topics] == [("t", 1)]


@pytest.mark.parametrize("version", range(8, 11))
def test_several_groups_offsets_are_read_at_once(talk: Talk, topic_id: bytes, version: int) -> None:
    commit(talk, "one", 9, topic_id)
    named = OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[1])
    if version >= 10:
        named.name = ""
        unknown = OffsetFetchRequestTopics(topic_id=NO_TOPIC, partition_indexes=[0])
    else:
        named.topic_id = bytes(16)
        unknown = OffsetFetchRequestTopics(name="none", partition_indexes=[0])
    groups = [
        OffsetFetchRequestGroup(group_id="one", topics=[unknown, named] if version >= 10 else [named, unknown]),
        OffsetFetchRequestGroup(group_id="one", topics=None),
        OffsetFetchRequestGroup(group_id="other", topics=None),
        OffsetFetchRequestGroup(group_id="", topics=None),
    ]
    some, every, nothing, nameless = talk.ask(OffsetFetchRequest(groups=groups), version).groups
    assert [p.committed_offset for topic in some.topics for p in topic.partitions] == [42, -1]
    assert some.topics[1].partitions[0].error_code == (E.UNKNOWN_TOPIC_ID if version >= 10 else 0)
    assert [p.committed_offset for topic in every.topics for p in topic.partitions] == [42]
    assert (nothing.error_code, nothing.topics, nameless.error_code) == (0, [], 0)


def test_the_empty_group_id_stores_offsets_as_it_did_for_the_oldest_clients(talk: Talk, topic_id: bytes) -> None:
    assert commit(talk, "", 9, topic_id)["t", 1] == 0
    group = talk.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="", topics=None)]), 9).groups[0]
    assert [p.committed_offset for topic in group.topics for p in topic.partitions] == [42]


def test_offsets_are_deleted_and_stay_deleted(talk: Talk, topic_id: bytes) -> None:
    commit(talk, "del", 9, topic_id)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1)]
    request = OffsetDeleteRequest(group_id="del", topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)])
    answer = talk.ask(request, 0)
    assert (answer.error_code, [p.error_code for p in answer.topics[0].partitions]) == (0, [0, 0])
    assert talk.ask(OffsetFetchRequest(group_id="del", topics=None), 7).topics == []
    assert talk.ask(request, 0).error_code == E.GROUP_ID_NOT_FOUND
    assert talk.ask(OffsetDeleteRequest(group_id=""), 0).error_code == E.INVALID_GROUP_ID


def test_offsets_are_not_deleted_where_there_is_no_partition(talk: Talk, topic_id: bytes) -> None:
    commit(talk, "gone", 9, topic_id)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (7, 1)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in ("t", "none")]
    answer = talk.ask(OffsetDeleteRequest(group_id="gone", topics=topics), 0)
    errors = {(topic.name, p.partition_index): p.error_code for topic in answer.topics for p in topic.partitions}
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert (answer.error_code, len(answer.topics)) == (0, 2)
    assert errors == {("t", 1): 0, ("t", 7): unknown, ("none", 7): unknown, ("none", 1): unknown}
    commit(talk, "gone", 9, topic_id)
    only_missing = OffsetDeleteRequest(group_id="gone", topics=topics[1:])
    assert [p.error_code for p in talk.ask(only_missing, 0).topics[0].partitions] == [unknown, unknown]


def test_a_deleted_topic_is_forgotten_by_its_groups(broker: Broker, talk: Talk) -> None:
    broker.create_topic("short")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="short", partitions=[partition])
    assert talk.ask(OffsetCommitRequest(group_id="s", topics=[topic]), 8).topics[0].partitions[0].error_code == 0
    assert talk.ask(DeleteTopicsRequest(topic_names=["short"], timeout_ms=1000), 5).responses[0].error_code == 0
    assert talk.ask(OffsetFetchRequest(group_id="s", topics=None), 7).topics == []
