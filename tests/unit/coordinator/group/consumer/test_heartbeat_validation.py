"""Heartbeats that are refused before anything else, with Kafka's errors and texts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.group.consumer_driver import owned, topic_id
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember
from tidelog.coordinator.group.consumer.heartbeat_validation import (
    check_epoch,
    check_released,
    check_request,
    check_room,
    known_static,
)
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions

JOIN = {
    "group_id": "g", "member_id": "m", "rebalance_timeout_ms": 5, "subscribed_topic_names": ["t"], "topic_partitions": [],
}  # fmt: skip


def request(**changes: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(**{**JOIN, **changes})


def refusal(asked: ConsumerGroupHeartbeatRequest, version: int = 1) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        check_request(asked, version, ("uniform", "range"))
    return caught.value


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " \t"}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "A joining member states its RebalanceTimeoutMs."),
        ({"topic_partitions": None}, "A joining member owns nothing yet: send an empty TopicPartitions."),
        ({"topic_partitions": [RequestTopicPartitions()]}, "A joining member owns nothing yet: send an empty TopicPartitions."),
        (
            {"subscribed_topic_names": None},
            "A joining member sends SubscribedTopicNames or SubscribedTopicRegex.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_what_makes_no_sense_is_an_invalid_request(changes: dict[str, Any], says: str) -> None:
    refused = refusal(request(**changes))
    assert (refused.code, refused.detail) == (E.INVALID_REQUEST, says)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
        {"subscribed_topic_names": []},
        {"server_assignor": "range"},
        {"member_epoch": 5, "topic_partitions": None, "rebalance_timeout_ms": -1, "subscribed_topic_names": None},
        {"member_epoch": -1, "rebalance_timeout_ms": -1},
        {"member_epoch": -2, "instance_id": "i"},
    ],
)
def test_what_makes_sense_passes(changes: dict[str, Any]) -> None:
    check_request(request(**changes), 1, ("uniform", "range"))


def test_before_version_one_the_coordinator_makes_member_ids() -> None:
    check_request(request(member_id=""), 0, ("uniform",))
    for epoch in (1, -1):
        assert refusal(request(member_id="", member_epoch=epoch), 0).detail == "MemberId can't be empty."


def test_an_unknown_assignor_is_answered_with_those_on_offer() -> None:
    refused = refusal(request(server_assignor="sticky"))
    assert refused.code is E.UNSUPPORTED_ASSIGNOR
    assert refused.detail == "The coordinator has no assignor sticky; it has uniform, range."


def test_a_full_group_takes_only_those_who_are_in_it() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a"))
    check_room(group, "a", 1)
    check_room(group, "b", 2)
    with pytest.raises(KafkaError, match=r"group\.consumer\.max\.size is 1") as caught:
        check_room(group, "b", 1)
    assert caught.value.code is E.GROUP_MAX_SIZE_REACHED


MEMBER = ConsumerMember("m", epoch=5, previous_epoch=4, assigned={topic_id("t"): {0: 5, 1: 5}})


@pytest.mark.parametrize(("epoch", "reported"), [(5, None), (0, None), (4, {}), (4, owned(t=[0])), (4, owned(t=[0, 1]))])
def test_a_members_epoch_zero_and_the_former_one_with_nothing_strange_are_accepted(epoch: int, reported: Any) -> None:
    check_epoch(MEMBER, epoch, reported)


@pytest.mark.parametrize(
    ("epoch", "reported", "how"),
    [(6, None, "greater"), (3, {}, "smaller"), (4, None, "smaller"), (4, owned(t=[2]), "smaller"), (4, owned(u=[0]), "smaller")],
)
def test_any_other_epoch_is_fenced(epoch: int, reported: Any, how: str) -> None:
    with pytest.raises(KafkaError, match=rf"sent epoch {epoch}, which is {how}") as caught:
        check_epoch(MEMBER, epoch, reported)
    assert caught.value.code is E.FENCED_MEMBER_EPOCH


def test_an_instance_id_is_released_when_its_member_left_for_a_while() -> None:
    check_released(ConsumerMember("old", epoch=-2), "new", "i")
    with pytest.raises(KafkaError, match="in use by member old") as caught:
        check_released(ConsumerMember("old", epoch=3), "new", "i")
    assert caught.value.code is E.UNRELEASED_INSTANCE_ID


def test_a_static_member_is_known_by_both_of_its_ids() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", instance_id="i"))
    assert known_static(group, "a", "i").member_id == "a"
    for member_id, instance_id, code in (("a", "other", E.UNKNOWN_MEMBER_ID), ("b", "i", E.FENCED_INSTANCE_ID)):
        with pytest.raises(KafkaError) as caught:
            known_static(group, member_id, instance_id)
        assert caught.value.code is code
