"""ConsumerGroupDescribe."""

from __future__ import annotations

from tests.unit.coordinator.group.classic_side import driver_with, newcomer
from tests.unit.coordinator.group.consumer_driver import ConsumerDriver, settled_pair
from tidelog.model.errors import ErrorCode as E


def test_a_group_is_shown_with_what_its_members_read_and_should_read() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    group = driver.machine.describe_consumer_group("g")
    assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Stable", 3, 3)
    assert group.assignor_name == "uniform"
    shown = {}
    for member in group.members:
        assert (member.member_epoch, member.subscribed_topic_names, member.member_type) == (3, ["t"], 1)
        assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")
        assert member.assignment == member.target_assignment
        (topic,) = member.assignment.topic_partitions
        assert topic.topic_name == "t"
        shown[member.member_id] = topic.partitions
    assert sorted(shown["a"] + shown["b"]) == [0, 1, 2]


def test_what_a_member_is_giving_up_is_still_shown_as_its() -> None:
    driver = ConsumerDriver()
    driver.configure("g", consumer_assignment_interval_ms="0")
    driver.enter("g", "a")
    driver.enter("g", "b")
    driver.beat("g", "a", 2)
    group = driver.machine.describe_consumer_group("g")
    members = {member.member_id: member for member in group.members}
    assert group.group_state == "Reconciling"
    assert members["a"].assignment.topic_partitions[0].partitions == [0, 1, 2]
    assert len(members["a"].target_assignment.topic_partitions[0].partitions) == 2
    assert members["b"].assignment.topic_partitions == []


def test_members_of_the_classic_protocol_are_told_apart() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    old = newcomer(driver).member_id
    group = driver.machine.describe_consumer_group("g")
    assert {member.member_id: member.member_type for member in group.members} == {"new": 1, old: 0}


def test_topics_that_are_gone_are_not_shown() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    driver.set_topics({})
    assert driver.machine.describe_consumer_group("g").members[0].assignment.topic_partitions == []


def test_other_groups_are_not_found() -> None:
    driver = ConsumerDriver()
    driver.join("classic", protocols=(("range", b"x"),))
    for group_id, text in (("none", "Group none not found."), ("classic", "Group classic is not a consumer group.")):
        group = driver.machine.describe_consumer_group(group_id)
        assert (group.error_code, group.error_message) == (E.GROUP_ID_NOT_FOUND, text)
