"""TxnOffsetCommit at the coordinator: who may commit, and what is seen of it until the marker (KIP-447)."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.driver import Driver, stable_group
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.offsets.transactional_offsets import commit, commit_error
from tidelog.coordinator.group.records import OffsetKey, offset_record
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GENERATION = 1


def asked(
    group: str, member: str = "", generation: int = -1, instance: str | None = None, note: str = ""
) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=note)
    return TxnOffsetCommitRequest(
        transactional_id="pay",
        group_id=group,
        producer_id=7,
        producer_epoch=0,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )


def told(driver: Driver, request: TxnOffsetCommitRequest) -> E | None:
    group = driver.machine.groups.get(request.group_id)
    assert group is None or isinstance(group, ClassicGroup)
    return commit_error(group, request)


def test_a_member_is_held_to_its_generation_and_who_names_nobody_is_trusted() -> None:
    driver = Driver()
    member = stable_group(driver)[0]
    assert told(driver, asked("g", member, GENERATION)) is None
    assert told(driver, asked("g", member, GENERATION - 1)) is E.ILLEGAL_GENERATION
    assert told(driver, asked("g", "stranger", GENERATION)) is E.UNKNOWN_MEMBER_ID
    assert told(driver, asked("g", member, -1)) is E.ILLEGAL_GENERATION
    assert told(driver, asked("g", member, GENERATION, "instance")) is E.UNKNOWN_MEMBER_ID
    assert told(driver, asked("g")) is None


def test_a_group_that_does_not_exist_takes_commits_without_a_generation_only() -> None:
    driver = Driver()
    assert told(driver, asked("new")) is None
    assert told(driver, asked("new", "m", 3)) is E.ILLEGAL_GENERATION


def test_a_group_between_two_generations_still_takes_commits_of_a_transaction() -> None:
    group = ClassicGroup("g", 0)
    group.state = GroupState.COMPLETING_REBALANCE
    assert commit_error(group, asked("g")) is None
    group.state = GroupState.DEAD
    assert commit_error(group, asked("g")) is E.COORDINATOR_NOT_AVAILABLE


def test_what_a_group_refuses_leaves_no_record() -> None:
    driver = Driver()
    token = driver.token()
    outcome = commit(token, asked("g"), E.ILLEGAL_GENERATION, metadata_max_bytes=10, now_ms=5)
    assert outcome.records == () and outcome.replies[0].response.topics[0].partitions[0].error_code == E.ILLEGAL_GENERATION
    outcome = commit(token, asked("g", note="x" * 11), None, metadata_max_bytes=10, now_ms=5)
    assert outcome.records == () and outcome.replies[0].response.topics[0].partitions[0].error_code == E.OFFSET_METADATA_TOO_LARGE
    assert len(commit(token, asked("g"), None, metadata_max_bytes=10, now_ms=5).records) == 1


def pend(driver: Driver, producer: int, offset: int) -> None:
    """A producer's commit of t-0 in group g, and a replay of its records as the log has them."""
    request = asked("g")
    request.topics[0].partitions[0].committed_offset = offset
    for record in commit(driver.token(), request, None, metadata_max_bytes=100, now_ms=driver.now).records:
        driver.machine.replay_pending(record, producer, driver.now)


def committed(driver: Driver) -> int | None:
    found = driver.machine.offsets.stored.get("g", "t", 0)
    return None if found is None else found.offset


@pytest.mark.parametrize("commits", [True, False])
def test_offsets_of_a_transaction_are_invisible_until_its_marker(commits: bool) -> None:
    driver = Driver()
    driver.commit("g", {("t", 0): 1})
    pend(driver, 7, 5)
    assert committed(driver) == 1 and driver.machine.offsets.stored.holds_back(OffsetKey("g", "t", 0))
    driver.machine.replay_marker(7, committed=commits)
    assert committed(driver) == (5 if commits else 1)
    assert not driver.machine.offsets.stored.in_transaction("g")


def test_a_plain_commit_after_a_transactional_one_is_not_undone_by_the_marker() -> None:
    driver = Driver()
    pend(driver, 7, 5)
    driver.commit("g", {("t", 0): 9})
    driver.machine.replay_marker(7, committed=True)
    assert committed(driver) == 9


def test_offsets_that_an_open_transaction_may_change_do_not_expire_and_keep_their_group() -> None:
    driver = Driver()
    driver.commit("g", {("t", 0): 1, ("t", 1): 1})
    pend(driver, 7, 5)
    driver.advance(driver.settings.offsets_retention_ms + 1_300_000)
    assert committed(driver) == 1 and driver.machine.offsets.stored.get("g", "t", 1) is None
    driver.machine.replay_marker(7, committed=False)
    driver.advance(1_300_000)
    assert committed(driver) is None


def test_deleting_offsets_takes_away_what_waits_in_a_transaction() -> None:
    driver = Driver()
    pend(driver, 7, 5)
    assert driver.delete_offsets("g", "t") == E.NONE
    driver.machine.replay_marker(7, committed=True)
    assert committed(driver) is None


def test_deleting_a_group_takes_away_what_waits_in_a_transaction() -> None:
    driver = Driver()
    pend(driver, 7, 5)
    assert driver.machine.offsets.stored.exist("g") and driver.machine.offsets.stored.group_ids() == ["g"]
    driver.run(driver.machine.offsets.delete_group(driver.token(), "g", lambda error: error))
    driver.machine.replay_marker(7, committed=True)
    assert committed(driver) is None and not driver.machine.offsets.stored.exist("g")


def test_offsets_of_a_topic_that_is_gone_go_also_from_transactions() -> None:
    driver = Driver()
    pend(driver, 7, 5)
    driver.run(driver.machine.offsets.forget_topics(frozenset({"t"})))
    driver.machine.replay_marker(7, committed=True)
    assert committed(driver) is None


def test_a_tombstone_within_a_transaction_counts_at_once() -> None:
    driver = Driver()
    driver.commit("g", {("t", 0): 1})
    driver.machine.replay_pending(offset_record(OffsetKey("g", "t", 0), None), 7, driver.now)
    assert committed(driver) is None
