"""Offsets of streams groups: who may commit, read and delete them, and when they expire."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ALL_TOPICS,
    ANN,
    BOB,
    DAY,
    IN,
    WORDS,
    StreamsDriver,
)
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def test_commits_are_checked_against_the_epochs_of_tasks() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    assert driver.commit("g", {(IN, 0): 5}, ANN, 2) == [0]
    assert driver.commit("g", {(IN, 1): 5}, ANN, 2) == [0], "while it is giving the task up"
    driver.streams_beat(ANN, 2, ({"0": [0], "1": [0]}, {}))
    driver.streams_beat(BOB, 3)
    stale = int(ErrorCode.STALE_MEMBER_EPOCH)
    assert driver.commit("g", {(IN, 0): 6, (WORDS, 0): 6}, ANN, 2) == [0, 0], "an old epoch, for tasks that it kept"
    assert driver.commit("g", {(IN, 1): 6}, ANN, 2) == [stale]
    assert driver.commit("g", {(IN, 0): 6, (IN, 1): 6}, ANN, 2) == [stale, stale], "as a whole"
    assert driver.commit("g", {("other", 0): 6}, ANN, 2) == [stale]
    assert driver.commit("g", {(IN, 1): 6}, BOB, 2) == [stale], "it got the task with epoch 3"
    assert driver.commit("g", {(IN, 0): 7}, ANN, 4) == [stale]
    assert driver.commit("g", {(IN, 0): 7}, "dan", 3) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.commit("g", {(IN, 0): 7}) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.commit("g", {(IN, 0): 7}, ANN, 3, version=8) == [ErrorCode.UNSUPPORTED_VERSION]
    assert driver.machine.offsets.stored.of("g")[IN, 0].offset == 6


def test_transactional_commits_get_the_errors_of_generations() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)

    def commit(member: str, epoch: int, version: int = 5) -> int:
        token = driver.token()
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = TxnOffsetCommitRequest(
            transactional_id="t", group_id="g", member_id=member, generation_id_or_member_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=IN, partitions=[partition])],
        )  # fmt: skip
        outcome = driver.machine.offsets.commit_transactional(token, request, driver.now, version)
        return int(outcome.replies[0].response.topics[0].partitions[0].error_code)

    assert commit(ANN, 2) == 0
    assert commit("", -1) == 0, "a producer that names no member"
    assert commit(ANN, 3) == ErrorCode.ILLEGAL_GENERATION
    assert commit(ANN, 3, version=6) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("dan", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_an_empty_group_may_be_set() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.streams_beat(ANN, -1)
    assert driver.commit("g", {(IN, 0): 5}) == [0]


def test_fetches_are_for_members_of_the_epoch_and_for_administrators() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    error = driver.machine.offsets.fetch_error
    assert error("g", None, -1) is None
    assert error("g", ANN, 2) is None
    assert error("g", ANN, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert error("g", "dan", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_are_read_are_neither_deleted_nor_expired() -> None:
    driver = StreamsDriver(topics={**ALL_TOPICS, "old": 1})
    driver.enter_streams(ANN)
    driver.commit("g", {(IN, 0): 5, ("old", 0): 7}, ANN, 2)
    assert driver.delete_offsets("g", IN) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert driver.delete_offsets("g", WORDS) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    for _ in range(8 * DAY // 40_000):
        driver.advance(40_000)
        driver.streams_beat(ANN, 2)
    assert list(driver.machine.offsets.stored.of("g")) == [(IN, 0)]
    driver.streams_beat(ANN, -1)
    assert driver.delete_offsets("g", IN) == 0
