"""Members of the classic protocol in a consumer group: they join, sync, show life and leave, at their member epoch."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.classic_side import driver_with, metadata, newcomer, numbers, rejoin, synced
from tests.unit.coordinator.group.consumer_driver import INTERVAL, ConsumerDriver, topic_id
from tidelog.coordinator.group.consumer.consumer_group import MemberState
from tidelog.coordinator.group.settings import MigrationPolicy
from tidelog.model.errors import ErrorCode as E

T = topic_id("t")


def mixed() -> tuple[ConsumerDriver, str]:
    """``new`` read everything until a classic member came; it has given up what the other is to read."""
    driver = driver_with()
    driver.enter("g", "new")
    joined = newcomer(driver)
    kept = driver.given(driver.beat("g", "new", 2))
    driver.beat("g", "new", 2, kept)
    return driver, joined.member_id


def test_a_classic_member_gets_its_share_once_the_other_gave_it_up() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    first = rejoin(driver, "")
    assert first.error_code == E.MEMBER_ID_REQUIRED
    joined = rejoin(driver, first.member_id)
    assert (joined.error_code, joined.generation_id, joined.protocol_name, joined.leader) == (0, 3, "range", "")
    assert numbers(synced(driver, first.member_id, 3).assignment) == []
    assert driver.heartbeat("g", first.member_id, 3) == E.NONE, "it waits for the other"
    kept = driver.given(driver.beat("g", "new", 2))
    assert kept is not None
    driver.beat("g", "new", 2, kept)
    assert driver.heartbeat("g", first.member_id, 3) == E.REBALANCE_IN_PROGRESS
    again = rejoin(driver, first.member_id)
    assert (again.error_code, again.generation_id) == (0, 3)
    assert numbers(synced(driver, first.member_id, 3).assignment) + kept["t"] != []
    assert sorted(numbers(synced(driver, first.member_id, 3).assignment) + kept["t"]) == [0, 1, 2]


def test_a_classic_member_gives_up_by_joining_again_without_what_it_lost() -> None:
    driver, old = mixed()
    rejoin(driver, old)
    driver.beat("g", "new", 3)
    driver.enter("g", "third")
    mine = sorted(driver.one("g", old).assigned[T])
    assert driver.heartbeat("g", old, 3) == E.REBALANCE_IN_PROGRESS
    unrevoked = rejoin(driver, old, mine)
    target = sorted(driver.consumers("g").target_of(old).get(T, frozenset()))
    if target != mine:
        assert driver.one("g", old).state is MemberState.UNREVOKED_PARTITIONS
        assert numbers(synced(driver, old, unrevoked.generation_id).assignment) == target
    assert rejoin(driver, old, target).generation_id == driver.consumers("g").assignment_epoch


def test_joins_that_are_refused() -> None:
    driver = driver_with(consumer_max_size=1)
    driver.enter("g", "new")
    assert rejoin(driver, "").error_code == E.GROUP_MAX_SIZE_REACHED
    assert rejoin(driver, "", session=1).error_code == E.INVALID_SESSION_TIMEOUT
    driver, old = mixed()
    assert rejoin(driver, "", protocols=(("other", metadata()),)).error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert rejoin(driver, "", kind="connect").error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert rejoin(driver, old, protocols=(("range", b"?"),)).error_code == E.UNKNOWN_SERVER_ERROR
    assert rejoin(driver, old, instance="i").error_code == E.UNKNOWN_MEMBER_ID
    disabled = driver_with(MigrationPolicy.DISABLED)
    disabled.enter("g", "new")
    assert rejoin(disabled, "").error_code == E.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [("old", 9, E.ILLEGAL_GENERATION), ("nobody", 3, E.UNKNOWN_MEMBER_ID), ("new", 3, E.UNKNOWN_MEMBER_ID)],
)
def test_heartbeats_and_syncs_of_others_are_refused(member: str, generation: int, error: E) -> None:
    driver, old = mixed()
    member = old if member == "old" else member
    assert driver.heartbeat("g", member, generation) == error
    assert synced(driver, member, generation).error_code == error


def test_a_sync_names_the_protocol_of_the_join() -> None:
    driver, old = mixed()
    token = driver.sync("g", old, 3, protocol_type="consumer", protocol_name="other")
    assert driver.answers[token].error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_who_is_told_to_join_again_has_its_rebalance_timeout_for_it() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    old = newcomer(driver, rebalance=20_000, session=30_000).member_id
    synced(driver, old, 3)
    driver.enter("g", "third")
    for _ in range(4):
        assert driver.heartbeat("g", old, 3) == E.REBALANCE_IN_PROGRESS
        driver.advance(4_999)
    driver.advance(5)
    assert old not in driver.consumers("g").members


def test_who_joins_and_does_not_sync_is_out_after_its_rebalance_timeout() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    old = newcomer(driver, rebalance=7_000, session=30_000).member_id
    driver.advance(6_999)
    assert old in driver.consumers("g").members
    driver.advance(1)
    assert old not in driver.consumers("g").members


def test_a_classic_member_has_the_session_that_it_asked_for() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    old = newcomer(driver, session=10_000).member_id
    synced(driver, old, 3)
    driver.advance(9_999)
    assert old in driver.consumers("g").members
    driver.advance(1)
    assert old not in driver.consumers("g").members


def test_several_leave_at_once_with_an_answer_each() -> None:
    driver, old = mixed()
    static = rejoin(driver, "", instance="i")
    assert static.error_code == 0
    left = driver.leave("g", (old, None), ("nobody", None), ("", "i"), ("wrong", "i"), ("", "unknown"))
    assert [member.error_code for member in left.members] == [
        0, E.UNKNOWN_MEMBER_ID, 0, E.FENCED_INSTANCE_ID, E.UNKNOWN_MEMBER_ID,
    ]  # fmt: skip
    assert list(driver.consumers("g").members) == ["new"]


def test_a_target_that_is_not_computed_yet_disturbs_nobody() -> None:
    driver = driver_with()
    driver.configure("g", consumer_assignment_interval_ms=str(INTERVAL))
    driver.enter("g", "new")
    joined = newcomer(driver)
    assert joined.generation_id == 2
    assert numbers(synced(driver, joined.member_id, 2).assignment) == []
    assert driver.heartbeat("g", joined.member_id, 2) == E.NONE
