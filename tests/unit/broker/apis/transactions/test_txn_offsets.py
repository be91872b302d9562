"""TxnOffsetCommit over the wire: who may, at every version, and what OffsetFetch says meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.txn_talk import TransactionalTalk
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("t", partitions=1)
        yield running


def fetched(talk: Talk, group: str, *, stable: bool) -> tuple[int, int]:
    """(error, offset) of t-0."""
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])],
        require_stable=stable,
    )
    partition = talk.ask(request, 8).groups[0].topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


def settled(talk: Talk, group: str) -> int:
    """The offset, once no transaction may change it any more."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        error, offset = fetched(talk, group, stable=True)
        if error != E.UNSTABLE_OFFSET_COMMIT:
            return offset
        time.sleep(0.01)
    raise AssertionError("the transaction does not end")


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_a_transaction_count_when_it_is_committed(talk: Talk, version: int) -> None:
    group = f"g{version}"
    producer = TransactionalTalk(talk, f"pay-{version}")
    if version < 5:
        producer.add_offsets(group)
    assert producer.commit_offset(group, "t", 5, version) == 0
    assert fetched(talk, group, stable=True) == (E.UNSTABLE_OFFSET_COMMIT, -1)
    assert fetched(talk, group, stable=False) == (0, -1)
    producer.end(commit=True)
    assert settled(talk, group) == 5
    producer.add_offsets(group)
    assert producer.commit_offset(group, "t", 9, 3) == 0
    assert fetched(talk, group, stable=False) == (0, 5)
    producer.end(commit=False)
    assert settled(talk, group) == 5


def test_all_offsets_of_a_group_are_told_as_unstable_too(talk: Talk) -> None:
    producer = TransactionalTalk(talk, "all")
    for commits in (True, False):
        producer.add_offsets("all")
        assert producer.commit_offset("all", "t", 5) == 0
        if commits:
            producer.end(commit=True)
            settled(talk, "all")
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="all", topics=None)], require_stable=True)
    partition = talk.ask(request, 8).groups[0].topics[0].partitions[0]
    assert (partition.error_code, partition.committed_offset) == (E.UNSTABLE_OFFSET_COMMIT, -1)
    producer.end(commit=False)


def test_a_commit_outside_of_a_transaction_is_refused_as_each_version_knows(talk: Talk) -> None:
    producer = TransactionalTalk(talk, "outside")
    assert producer.commit_offset("outside", "t", 5, 3) == E.INVALID_TXN_STATE
    assert producer.commit_offset("outside", "t", 5, 4) == E.TRANSACTION_ABORTABLE


def test_a_fenced_producer_may_not_commit(talk: Talk) -> None:
    old = TransactionalTalk(talk, "fenced")
    new = TransactionalTalk(talk, "fenced")
    assert new.epoch > old.epoch
    new.add_offsets("f")
    assert old.commit_offset("f", "t", 5) == E.INVALID_PRODUCER_EPOCH
    assert new.commit_offset("f", "t", 5) == 0
    assert old.commit_offset("f", "t", 6) in {E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE}
    new.end(commit=True)
    assert settled(talk, "f") == 5


def test_members_that_do_not_exist_are_refused(talk: Talk) -> None:
    producer = TransactionalTalk(talk, "member")
    producer.add_offsets("m")
    assert producer.commit_offset("m", "t", 5, generation_id_or_member_epoch=3, member_id="x") == E.ILLEGAL_GENERATION
    assert producer.commit_offset("", "t", 5) == E.INVALID_GROUP_ID
    assert producer.commit_offset("m", "elsewhere", 5) == E.UNKNOWN_TOPIC_OR_PARTITION
    producer.end(commit=False)


def test_partitions_that_exist_are_committed_beside_some_that_do_not(talk: Talk) -> None:
    producer = TransactionalTalk(talk, "beside")
    producer.add_offsets("b")
    partitions = [TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=3, committed_metadata="") for n in (0, 7)]
    request = TxnOffsetCommitRequest(
        transactional_id="beside",
        group_id="b",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=partitions)],
    )
    answer = talk.ask(request, 3).topics[0].partitions
    assert [(part.partition_index, part.error_code) for part in answer] == [(0, 0), (7, E.UNKNOWN_TOPIC_OR_PARTITION)]
    producer.end(commit=True)
    assert settled(talk, "b") == 3


def test_offsets_of_transactions_are_read_again_by_a_node_that_was_restarted() -> None:
    with Broker() as broker:
        broker.create_topic("t", partitions=1)
        talk = Talk(broker.port)
        talk.find("any")
        committed, opened = TransactionalTalk(talk, "committed"), TransactionalTalk(talk, "open")
        for producer, group in ((committed, "a"), (opened, "b")):
            producer.add_offsets(group)
            assert producer.commit_offset(group, "t", 5) == 0
        committed.end(commit=True)
        assert settled(talk, "a") == 5
        talk.close()
        broker.restart()
        talk = Talk(broker.port)
        talk.find("any")
        assert settled(talk, "a") == 5
        assert fetched(talk, "b", stable=True) == (E.UNSTABLE_OFFSET_COMMIT, -1)
        opened.talk = talk
        opened.end(commit=True)
        assert settled(talk, "b") == 5
        talk.close()


def test_version_six_names_topics_by_id(talk: Talk) -> None:
    producer = TransactionalTalk(talk, "by id")
    topic_id = talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics[0].topic_id
    partitions = [TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=7, committed_metadata="") for n in (0, 9)]
    request = TxnOffsetCommitRequest(
        transactional_id="by id",
        group_id="ids",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(topic_id=each, partitions=partitions) for each in (topic_id, b"n" * 16, bytes(16))],
    )
    answer = talk.ask(request, 6).topics
    assert [bytes(each.topic_id) for each in answer] == [topic_id, b"n" * 16, bytes(16)]
    errors = [[part.error_code for part in each.partitions] for each in answer]
    assert errors == [[0, E.UNKNOWN_TOPIC_OR_PARTITION], [E.UNKNOWN_TOPIC_ID] * 2, [E.UNKNOWN_TOPIC_ID] * 2]
    producer.end(commit=True)
    assert settled(talk, "ids") == 7
