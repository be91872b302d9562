"""When a target is computed, by which assignor, and which records come of it."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import image_of, kind, owned, topic_id
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember
from tidelog.coordinator.group.consumer.target_assignment import (
    compute_target,
    group_spec,
    last_target,
    may_compute,
    preferred_assignor,
)
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.errors import ErrorCode, KafkaError

TOPICS = TopicMetadata(lambda: image_of({"t": 2, "u": 1}, racks=("r",)))


@pytest.mark.parametrize(
    ("computed_ms", "interval_ms", "may"),
    [
        (0, 1_000, True),
        (5_000, 0, True),
        (5_000, 1_000, False),
        (4_001, 1_000, False),
        (4_000, 1_000, True),
        (9_000, 1_000, True),
    ],
)
def test_a_target_is_left_alone_until_the_interval_is_over(computed_ms: int, interval_ms: int, may: bool) -> None:
    group = ConsumerGroup("g")
    group.assignment_timestamp_ms = computed_ms
    assert may_compute(group, interval_ms, 5_000) is may


def test_members_vote_for_the_assignor() -> None:
    votes = {
        name: ConsumerMember(name, assignor=wish) for name, wish in (("a", None), ("b", "range"), ("c", "range"), ("d", "x"))
    }
    assert preferred_assignor(votes, "uniform") == "range"
    assert preferred_assignor({"a": votes["a"]}, "uniform") == "uniform"


def test_only_changed_targets_are_recorded_and_the_epoch_comes_last() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", topics=("t",)))
    group.update_member(ConsumerMember("b", topics=("t",)))
    group.target = {"a": owned(t=[0]), "b": owned(t=[1])}
    same = compute_target(group, 7, group.members["a"], TOPICS, "uniform", 99)
    assert [kind(record) for record in same.records] == [6]
    assert (same.epoch, same.partitions) == (7, owned(t=[0]))
    more = compute_target(group, 8, ConsumerMember("b", topics=("t", "u")), TOPICS, "uniform", 99)
    assert [kind(record) for record in more.records] == [7, 6]
    assert last_target(group, group.members["b"]).partitions == owned(t=[1])


def test_who_replaces_a_static_member_is_told_to_the_assignor_in_its_place() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("old", instance_id="i", topics=("t",)))
    group.target["old"] = owned(t=[1])
    members = group.members_with(ConsumerMember("new", instance_id="i", rack_id="r", topics=("t", "missing")))
    spec = group_spec(group, members, TOPICS)
    assert list(spec.members) == ["new"]
    told = spec.members["new"]
    assert (told.instance_id, told.rack_id, dict(told.owned)) == ("i", "r", owned(t=[1]))
    assert told.subscribed_topic_ids == {topic_id("t")}
    assert spec.topics[topic_id("t")].racks == (frozenset("r"),) * 2


def test_subscriptions_are_homogeneous_when_all_are_the_same() -> None:
    group = ConsumerGroup("g")
    members = {name: ConsumerMember(name, topics=("t",)) for name in "ab"}
    assert group_spec(group, members, TOPICS).subscription_homogeneous
    members["b"] = ConsumerMember("b", topics=("u",))
    assert not group_spec(group, members, TOPICS).subscription_homogeneous


def test_an_assignor_that_fails_fails_the_request() -> None:
    with pytest.raises(KafkaError, match="The assignor failed for group epoch 2") as caught:
        compute_target(ConsumerGroup("g"), 2, ConsumerMember("a", topics=("t",)), TOPICS, "none such", 0)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
