"""Heartbeats: joining, sharing, rejoining, what is answered and which records are written, in Kafka's order."""

from __future__ import annotations

from tests.unit.coordinator.group.consumer_driver import INTERVAL, ConsumerDriver, settled_pair, topic_id
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroupState, MemberState
from tidelog.coordinator.group.consumer.consumer_heartbeat import read_reported
from tidelog.coordinator.group.settings import Bounded, GroupSettings
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.consumer_group_heartbeat import RequestTopicPartitions

T = topic_id("t")


def test_the_first_member_gets_everything_at_epoch_two() -> None:
    driver = ConsumerDriver()
    answer = driver.enter("g", "a")
    assert (answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (0, "a", 2, 5_000)
    assert driver.given(answer) == {"t": [0, 1, 2]}
    assert driver.types_since(0) == [5, 3, 7, 6, 8]
    assert driver.consumers("g").state is ConsumerGroupState.STABLE


def test_a_steady_heartbeat_writes_nothing_and_says_nothing_of_the_assignment() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    written = len(driver.log)
    answer = driver.beat("g", "a", 2)
    assert (answer.member_epoch, answer.assignment, len(driver.log)) == (2, None, written)
    full = driver.beat("g", "a", 2, {"t": [0, 1, 2]}, subscribed_topic_names=["t"], rebalance_timeout_ms=60_000)
    assert driver.given(full) == {"t": [0, 1, 2]}, "who says everything is told everything"
    assert len(driver.log) == written


def test_a_second_member_waits_for_the_interval_and_for_what_the_first_gives_up() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    joined = driver.enter("g", "b")
    assert (joined.member_epoch, driver.given(joined)) == (2, {}), "the target is too young for a new one"
    assert driver.consumers("g").state is ConsumerGroupState.ASSIGNING
    driver.advance(INTERVAL)
    waiting = driver.beat("g", "b", 2)
    assert (waiting.member_epoch, driver.given(waiting)) == (3, None)
    assert driver.one("g", "b").state is MemberState.UNRELEASED_PARTITIONS
    revoke = driver.beat("g", "a", 2)
    kept = driver.given(revoke)
    assert kept is not None and len(kept["t"]) == 2 and revoke.member_epoch == 2
    assert driver.beat("g", "b", 3).assignment is None
    assert driver.beat("g", "a", 2, kept).member_epoch == 3
    last = driver.given(driver.beat("g", "b", 3))
    assert last is not None and sorted(last["t"] + kept["t"]) == [0, 1, 2]
    assert driver.consumers("g").state is ConsumerGroupState.STABLE


def test_an_answer_that_was_lost_is_given_again_to_who_comes_with_the_former_epoch() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    mine = sorted(driver.one("g", "a").assigned[T])
    assert driver.beat("g", "a", 2, {"t": mine}).member_epoch == 3
    assert driver.beat("g", "a", 2, {"t": [0, 1, 2]}).error_code == E.FENCED_MEMBER_EPOCH
    assert driver.beat("g", "a", 9).error_code == E.FENCED_MEMBER_EPOCH


def test_a_member_that_begins_anew_keeps_its_place() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    mine = sorted(driver.one("g", "a").assigned[T])
    again = driver.enter("g", "a")
    assert (again.member_epoch, driver.given(again)) == (3, {"t": mine})


def test_unknown_members_and_groups_are_told_so() -> None:
    driver = ConsumerDriver()
    assert driver.beat("g", "a", 1).error_code == E.GROUP_ID_NOT_FOUND
    driver.enter("g", "a")
    answer = driver.beat("g", "b", 2)
    assert (answer.error_code, answer.error_message) == (E.UNKNOWN_MEMBER_ID, "Group g has no member b: join again.")


def test_a_group_does_not_grow_beyond_its_size() -> None:
    driver = ConsumerDriver(GroupSettings(consumer_max_size=1))
    driver.enter("g", "a")
    assert driver.enter("g", "b").error_code == E.GROUP_MAX_SIZE_REACHED
    assert driver.enter("g", "a").error_code == 0
    assert list(driver.machine.groups) == ["g"]


def test_a_refused_first_heartbeat_leaves_no_group() -> None:
    driver = ConsumerDriver(GroupSettings(consumer_max_size=0))
    assert driver.enter("g", "a").error_code == E.GROUP_MAX_SIZE_REACHED
    assert driver.machine.groups == {} and driver.log == []


def test_a_member_without_an_id_is_given_one() -> None:
    driver = ConsumerDriver()
    made = driver.enter("g", "").member_id
    assert made is not None and len(made) == 22 and made in driver.consumers("g").members


def test_a_new_subscription_takes_topics_away_at_once_and_gives_others_with_the_next_target() -> None:
    driver = ConsumerDriver(topics={"t": 1, "u": 2})
    driver.enter("g", "a")
    changed = driver.beat("g", "a", 2, subscribed_topic_names=["u"])
    assert (changed.member_epoch, driver.given(changed)) == (2, {}), "t is not subscribed, u is not assigned yet"
    assert driver.one("g", "a").state is MemberState.UNREVOKED_PARTITIONS
    driver.advance(INTERVAL)
    assert driver.given(driver.beat("g", "a", 2, {})) == {"u": [0, 1]}
    assert driver.one("g", "a").epoch == 3


def test_new_partitions_new_topics_and_deleted_ones_come_with_the_next_heartbeat() -> None:
    driver = ConsumerDriver(topics={"t": 1})
    driver.enter("g", "a", ["t", "later"])
    for topics, given in (({"t": 2}, {"t": [0, 1]}), ({"t": 2, "later": 1}, {"later": [0], "t": [0, 1]})):
        driver.set_topics(topics)
        driver.advance(INTERVAL)
        epoch = driver.one("g", "a").epoch
        answer = driver.beat("g", "a", epoch)
        assert (answer.member_epoch, driver.given(answer)) == (epoch + 1, given)
    driver.set_topics({"later": 1})
    driver.advance(INTERVAL)
    assert driver.given(driver.beat("g", "a", 4)) == {"later": [0]}
    assert driver.beat("g", "a", 4, {"later": [0]}).member_epoch == 5


def test_topics_of_others_bump_nothing() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    written = len(driver.log)
    driver.set_topics({"t": 3, "other": 1})
    driver.advance(INTERVAL)
    driver.beat("g", "a", 2)
    assert len(driver.log) == written


def test_the_groups_own_settings_win_within_the_brokers_bounds() -> None:
    driver = ConsumerDriver(GroupSettings(consumer_heartbeat_interval=Bounded(5_000, 5_000, 15_000)))
    driver.configure("g", consumer_heartbeat_interval_ms="7000", consumer_assignment_interval_ms="0")
    assert driver.enter("g", "a").heartbeat_interval_ms == 7_000
    assert driver.enter("g", "b").member_epoch == 3, "without an interval the target is new at once"
    driver.configure("g", consumer_heartbeat_interval_ms="99999")
    assert driver.beat("g", "b", 3).heartbeat_interval_ms == 15_000


def test_most_members_choose_the_assignor() -> None:
    driver = ConsumerDriver(topics={"t": 3, "u": 3})
    driver.configure("g", consumer_assignment_interval_ms="0")
    for member in ("a", "b"):
        driver.enter("g", member, ["t", "u"], server_assignor="range")
    targets = driver.consumers("g").target
    assert sorted(len(partitions) for target in targets.values() for partitions in target.values()) == [1, 1, 2, 2]
    assert len({frozenset(target.items()) for target in targets.values()}) == 2


def test_groups_are_as_before_after_a_restart() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    before = driver.consumers("g")
    driver.restart()
    after = driver.consumers("g")
    for name in ("epoch", "metadata_hash", "assignment_epoch", "assignment_timestamp_ms", "members", "target", "static"):
        assert getattr(after, name) == getattr(before, name), name
    written = len(driver.log)
    assert driver.beat("g", "a", 3).error_code == 0
    assert len(driver.log) == written, "the topics are as they were"


def test_a_record_of_before_4_1_is_taken_back_with_the_next_change() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    driver.consumers("g").has_partition_metadata = True
    position = len(driver.log)
    driver.beat("g", "a", 2, subscribed_topic_names=["t", "x"])
    assert driver.types_since(position) == [5, 3, -4]
    assert not driver.consumers("g").has_partition_metadata


def test_a_subscription_that_no_record_can_hold_is_refused_and_disturbs_nobody() -> None:
    driver = ConsumerDriver(GroupSettings(max_record_bytes=1_000))
    driver.enter("g", "a")
    written = len(driver.log)
    answer = driver.enter("g", "b", [f"topic-{number}" for number in range(200)])
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR and "1000 fit" in (answer.error_message or "")
    assert len(driver.log) == written and list(driver.consumers("g").members) == ["a"]
    assert driver.beat("g", "a", 2).error_code == 0


def test_a_topic_that_is_reported_a_hundred_thousand_times_is_looked_at_as_often() -> None:
    topics = [RequestTopicPartitions(topic_id=topic_id("t"), partitions=[number]) for number in range(100_000)]
    assert read_reported(topics) == {topic_id("t"): frozenset(range(100_000))}
