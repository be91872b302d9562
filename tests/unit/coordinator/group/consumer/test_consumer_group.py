"""What a consumer group is: its states, who owns what, who subscribes to what."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import topic_id
from tidelog.coordinator.group.consumer.consumer_group import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerGroupState,
    ConsumerMember,
    MemberState,
    ResolvedRegex,
    Timers,
)
from tidelog.model.errors import ErrorCode, KafkaError

T = topic_id("t")


def test_a_group_is_empty_then_assigning_then_reconciling_then_stable() -> None:
    group = ConsumerGroup("g")
    assert (group.state, group.epoch) == (ConsumerGroupState.EMPTY, 1)
    group.update_member(ConsumerMember("a", epoch=1))
    group.epoch = 2
    assert group.state is ConsumerGroupState.ASSIGNING
    group.assignment_epoch = 2
    assert group.state is ConsumerGroupState.RECONCILING
    group.update_member(ConsumerMember("a", epoch=2, state=MemberState.UNRELEASED_PARTITIONS))
    assert group.state is ConsumerGroupState.RECONCILING
    group.update_member(ConsumerMember("a", epoch=2))
    assert group.state is ConsumerGroupState.STABLE


def test_what_a_member_reads_or_gives_up_is_its_until_it_is_neither() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", assigned={T: {0: 2}}, revoking={T: {1: 2}}, state=MemberState.UNREVOKED_PARTITIONS))
    assert [group.owner(T, partition) for partition in range(3)] == ["a", "a", None]
    group.check()
    group.update_member(ConsumerMember("a", assigned={T: {0: 2}}))
    assert [group.owner(T, partition) for partition in range(3)] == ["a", None, None]
    group.remove_member("a")
    assert group.owners == {}


def test_a_former_owner_does_not_take_a_partition_from_the_next_one() -> None:
    # As in a compacted log, where the new owner's record may come first.
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", assigned={T: {0: 2}}))
    group.update_member(ConsumerMember("b", assigned={T: {0: 3}}))
    group.update_member(ConsumerMember("a"))
    assert group.owner(T, 0) == "b"


def test_two_owners_of_one_partition_break_the_invariants() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", assigned={T: {0: 2}}))
    group.update_member(ConsumerMember("b", assigned={T: {0: 3}}))
    with pytest.raises(AssertionError):
        group.check()


def test_a_static_member_that_came_back_takes_the_place_and_the_target_of_the_former() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("old", instance_id="i"))
    group.target["old"] = {T: frozenset({1})}
    assert group.target_of("new", "i") == {T: frozenset({1})}
    assert list(group.members_with(ConsumerMember("new", instance_id="i"))) == ["new"]
    group.update_member(ConsumerMember("new", instance_id="i"))
    group.remove_member("old")
    found = group.static_member("i")
    assert found is not None and found.member_id == "new"


def test_a_member_subscribes_by_name_and_by_pattern() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("a", topics=("t",), regex="x.*"))
    assert group.subscribed_topics() == {"t"}, "not resolved yet"
    group.regexes["x.*"] = ResolvedRegex(frozenset({"x1"}), 1, 1)
    assert group.subscribed_topics() == {"t", "x1"}
    assert group.subscribers("x.*") == 1


def test_an_unknown_member_is_named_in_the_refusal() -> None:
    with pytest.raises(KafkaError, match="Group g has no member a") as caught:
        ConsumerGroup("g").member("a")
    assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_protocol_is_supported_when_all_classic_members_have_it() -> None:
    group = ConsumerGroup("g")
    group.update_member(ConsumerMember("new"))
    assert group.supports_classic("consumer", ["any"])
    group.update_member(ConsumerMember("old", classic=ClassicMetadata(1, (("range", b""), ("sticky", b"")))))
    assert group.supports_classic("consumer", ["other", "sticky"])
    assert not group.supports_classic("consumer", ["other"])
    assert not group.supports_classic("connect", ["range"])
    assert group.all_classic_except(["new"]) and not group.all_classic_except(["old"])


def test_an_unknown_state_of_a_later_version_is_unknown() -> None:
    assert [MemberState.read(number) for number in (0, 1, 2, 9)] == [*list(MemberState)[:3], MemberState.UNKNOWN]


def test_timers_know_the_earliest_deadline_and_forget_members() -> None:
    timers = Timers()
    timers.arm(timers.sessions, "a", 50)
    timers.arm_rebalance("a", 30, epoch=2)
    assert timers.soonest_ms == 30
    timers.forget("a")
    timers.look_again()
    assert timers.soonest_ms is None
