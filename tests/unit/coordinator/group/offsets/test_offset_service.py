"""Offsets of both kinds of groups, as requests meet them."""

from __future__ import annotations

from tests.unit.coordinator.group.consumer_driver import ConsumerDriver, settled_pair, topic_id
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def commit(driver: ConsumerDriver, member: str, epoch: int, metadata: dict[int, str]) -> list[int]:
    """Commits one offset of ``t`` with a note for each partition; the errors."""
    token = driver.token()
    partitions = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=7, committed_metadata=note)
        for number, note in metadata.items()
    ]
    topics = [OffsetCommitRequestTopic(name="t", topic_id=topic_id("t"), partitions=partitions)]
    request = OffsetCommitRequest(group_id="g", member_id=member, generation_id_or_member_epoch=epoch, topics=topics)
    driver.run(driver.machine.offsets.commit(token, request, 9, driver.now))
    return [partition.error_code for topic in driver.answers[token].topics for partition in topic.partitions]


def test_a_stale_commit_is_refused_as_a_whole_and_a_late_one_of_what_was_kept_is_taken() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    kept = sorted(driver.one("g", "a").assigned[topic_id("t")])
    (lost,) = {0, 1, 2} - set(kept)
    assert commit(driver, "a", 2, {kept[0]: ""}) == [0]
    assert commit(driver, "a", 2, {kept[0]: "", lost: ""}) == [E.STALE_MEMBER_EPOCH] * 2
    assert commit(driver, "a", 3, {lost: ""}) == [0], "with the current epoch nobody asks what is whose"
    assert commit(driver, "nobody", 3, {0: ""}) == [E.UNKNOWN_MEMBER_ID]


def test_notes_that_are_too_long_concern_their_partitions_only() -> None:
    driver = ConsumerDriver(GroupSettings(offset_metadata_max_bytes=3))
    driver.enter("g", "a")
    assert commit(driver, "a", 2, {0: "long", 1: "ok"}) == [E.OFFSET_METADATA_TOO_LARGE, 0]


def test_offsets_that_a_member_subscribes_to_are_not_deleted() -> None:
    driver = ConsumerDriver(topics={"t": 3, "u": 1})
    driver.enter("g", "a")
    commit(driver, "a", 2, {0: ""})
    assert driver.delete_offsets("g", "t") == E.GROUP_SUBSCRIBED_TO_TOPIC
    assert driver.delete_offsets("g", "u") == 0


def test_a_transactional_commit_is_held_to_the_members_epoch() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    partitions = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]

    def errors(member: str, epoch: int, version: int = 5, group: str = "g") -> list[int]:
        token = driver.token()
        request = TxnOffsetCommitRequest(
            group_id=group, member_id=member, generation_id_or_member_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=partitions)],
        )  # fmt: skip
        outcome = driver.machine.offsets.commit_transactional(token, request, driver.now, version)
        return [part.error_code for topic in outcome.replies[0].response.topics for part in topic.partitions]

    assert errors("a", 3) == [0] == errors("", -1)
    assert errors("a", 9) == [E.ILLEGAL_GENERATION]
    assert errors("a", 9, 6) == [E.STALE_MEMBER_EPOCH]
    assert errors("nobody", 3) == [E.UNKNOWN_MEMBER_ID]
    assert errors("a", 1, group="none") == [E.ILLEGAL_GENERATION]
    assert errors("a", 1, 6, group="none") == [E.GROUP_ID_NOT_FOUND]


def test_offsets_and_the_group_expire_together() -> None:
    driver = ConsumerDriver(GroupSettings(offsets_retention_ms=1_000_000, offsets_retention_check_interval_ms=100_000))
    driver.enter("g", "a")
    commit(driver, "a", 2, {0: ""})
    driver.beat("g", "a", -1)
    driver.advance(900_000)
    assert driver.machine.offsets.stored.get("g", "t", 0) is not None and "g" in driver.machine.groups
    driver.advance(200_000)
    assert driver.machine.offsets.stored.get("g", "t", 0) is None and "g" not in driver.machine.groups
