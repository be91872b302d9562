"""Commits: who may, what survives, what expires."""

from __future__ import annotations

from tests.unit.coordinator.group.driver import Driver, stable_group
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.offsets.committed_offsets import read_subscription
from tidelog.model.errors import ErrorCode as E


def test_offsets_survive_with_metadata_and_epoch() -> None:
    driver = Driver()
    ids = stable_group(driver)
    assert driver.commit("g", {("t", 0): 42, ("t", 1): 7}, ids[0], 1, "note") == [0, 0]
    driver.restart()
    committed = driver.machine.offsets.stored.get("g", "t", 0)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.metadata) == (42, 3, "note")


def test_who_may_commit() -> None:
    driver = Driver()
    assert driver.commit("lonely", {("t", 0): 1}) == [0]
    ids = stable_group(driver)
    assert driver.commit("g", {("t", 0): 1}) == [E.UNKNOWN_MEMBER_ID]
    assert driver.commit("g", {("t", 0): 1}, ids[0], 0) == [E.ILLEGAL_GENERATION]
    assert driver.commit("g", {("t", 0): 1}, ids[0], 1, "x" * 4_097) == [E.OFFSET_METADATA_TOO_LARGE]
    driver.leave("g", *[(member, None) for member in ids])
    assert driver.commit("g", {("t", 0): 1}) == [0]


def test_a_member_of_no_group_is_told_so_since_v9_and_before_that_its_generation_is_over() -> None:
    driver = Driver()
    for group in ("none", ""):
        assert driver.commit(group, {("t", 0): 1}, "m", 5, version=8) == [E.ILLEGAL_GENERATION]
        assert driver.commit(group, {("t", 0): 1}, "m", 5, version=9) == [E.GROUP_ID_NOT_FOUND]


def test_offsets_of_a_topic_that_members_read_stay_also_where_their_metadata_do_not_tell() -> None:
    for metadata, refused in ((subscription("t"), True), (b"odd", True), (subscription("u"), False)):
        driver = Driver()
        member, _ = driver.join_twice("g", protocols=(("range", metadata),))
        driver.advance(3_000)
        driver.sync("g", member, 1, {member: b""})
        driver.commit("g", {("t", 0): 1}, member, 1)
        assert driver.delete_offsets("g", "t") == (E.GROUP_SUBSCRIBED_TO_TOPIC if refused else E.NONE)
        driver.leave("g", (member, None))
        assert driver.delete_offsets("g", "t") == E.NONE
        assert driver.machine.offsets.stored.get("g", "t", 0) is None


def test_offsets_of_an_empty_group_expire_a_week_after_it_became_empty_and_the_group_with_them() -> None:
    driver = Driver()
    ids = stable_group(driver, 1)
    driver.commit("g", {("t", 0): 1}, ids[0], 1)
    driver.leave("g", (ids[0], None))
    week = driver.settings.offsets_retention_ms
    driver.advance(week - 700_000)
    assert driver.machine.offsets.stored.get("g", "t", 0) is not None
    driver.advance(1_400_000)
    assert driver.machine.offsets.stored.get("g", "t", 0) is None and "g" not in driver.machine.groups
    driver.restart()
    assert not driver.machine.groups and len(driver.machine.offsets.stored) == 0


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    driver = Driver()
    driver.commit("g", {("t", 0): 1, ("u", 0): 2})
    driver.run(driver.machine.offsets.forget_topics(frozenset({"t"})))
    assert driver.machine.offsets.stored.get("g", "t", 0) is None and driver.machine.offsets.stored.get("g", "u", 0) is not None


def subscription(*topics: str) -> bytes:
    """A ConsumerProtocolSubscription v0."""
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + (0).to_bytes(4, "big")


def test_subscriptions_are_read_and_garbage_is_none() -> None:
    assert read_subscription(subscription("a", "bc")) == ["a", "bc"]
    for garbage in (b"", b"\0\0\0", subscription("abc")[:-6], b"\0\0\x7f\xff\xff\xff"):
        assert read_subscription(garbage) is None


def test_in_a_stable_group_only_topics_that_nobody_reads_expire() -> None:
    driver = Driver()
    member, token = driver.join_twice("g", protocols=(("range", subscription("read")),), session=1_800_000)
    driver.advance(3_000)
    driver.sync("g", member, 1, {member: b""})
    driver.commit("g", {("read", 0): 1, ("left", 0): 1}, member, driver.answers[token].generation_id)
    for _ in range(8 * 24 * 3):
        driver.advance(1_200_000)
        driver.heartbeat("g", member, 1)
    assert list(driver.machine.offsets.stored.of("g")) == [("read", 0)]


def test_a_group_that_only_stores_offsets_loses_them_a_week_after_each_commit() -> None:
    driver = Driver()
    driver.commit("g", {("t", 0): 1})
    driver.advance(4 * 24 * 3_600_000)
    driver.commit("g", {("t", 1): 1})
    driver.advance(4 * 24 * 3_600_000)
    assert list(driver.machine.offsets.stored.of("g")) == [("t", 1)]


def test_what_members_read_is_known_while_one_of_them_changes_its_protocol() -> None:
    driver = Driver()
    both = (("range", subscription("read")), ("sticky", subscription("read")))
    (leader, first), (follower, _) = [driver.join_twice("g", protocols=both) for _ in range(2)]
    driver.advance(9_000)
    assert driver.answers[first].protocol_name == "range"
    driver.sync("g", leader, 1, {})
    driver.sync("g", follower, 1)
    driver.commit("g", {("read", 0): 5, ("other", 0): 5}, leader, 1)
    driver.join("g", follower, protocols=both[1:])
    assert driver.delete_offsets("g", "read") == E.GROUP_SUBSCRIBED_TO_TOPIC
    assert driver.delete_offsets("g", "other") == 0
    effects = Effects()
    driver.machine.offsets.expire(effects, driver.now + driver.settings.offsets_retention_ms)
    assert effects.records == [], "nothing expires while members come and go, and the other groups' timers run"
