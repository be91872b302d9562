"""A group that changes its protocol in the middle of a rebalance: a partition that is still read gets no second owner.

Found by tests/property/test_consumer_groups.py; Kafka 4.3 lets two members read the same for a while in each of these cases.
"""

from __future__ import annotations

from typing import Any

from tests.property.group_churn import GROUP, SUBSCRIPTION_VERSION, ChurnDriver
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, MemberState
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from tidelog.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tidelog.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.protocol.messages.consumer_protocol_subscription import TopicPartition as OwnedTopic

TOPIC = Uuid(bytes(15) + b"\x01")


def world() -> ChurnDriver:
    driver = ChurnDriver(GroupSettings(initial_rebalance_delay_ms=0), 1)
    driver.set_topics({"t": (TOPIC, 4)}, created=True)
    return driver


def cooperative(driver: ChurnDriver, member: str, owned: list[int] | None = None, generation: int = -1) -> int:
    claims = [OwnedTopic(topic="t", partitions=owned)] if owned else []
    subscription = ConsumerProtocolSubscription(topics=["t"], owned_partitions=claims, generation_id=generation)
    metadata = SUBSCRIPTION_VERSION.to_bytes(2) + subscription.encode(SUBSCRIPTION_VERSION)
    return int(driver.join(GROUP, member, protocols=(("cooperative-sticky", metadata),)))


def assigned(partitions: list[int]) -> bytes:
    topics = [AssignedTopic(topic="t", partitions=partitions)] if partitions else []
    return bytes(2) + ConsumerProtocolAssignment(assigned_partitions=topics).encode(0)


def modern(driver: ChurnDriver, member: str, epoch: int = 0, owned: list[int] | None = None) -> Any:
    request = ConsumerGroupHeartbeatRequest(GROUP, member, epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.subscribed_topic_names, owned = 60_000, ["t"], []
    if owned is not None:
        request.topic_partitions = [RequestTopicPartitions(topic_id=TOPIC, partitions=owned)] if owned else []
    return driver.beat(request)


def classic_pair(driver: ChurnDriver) -> tuple[str, str]:
    """The first member reads all; in the next generation it is to give up two, and has not heard of that yet."""
    first = driver.answers[cooperative(driver, "")].member_id
    token = cooperative(driver, first)
    driver.advance(0)
    driver.sync(GROUP, first, driver.answers[token].generation_id, {first: assigned([0, 1, 2, 3])})
    second = driver.answers[cooperative(driver, "")].member_id
    cooperative(driver, second)
    token = cooperative(driver, first, [0, 1, 2, 3], driver.answers[token].generation_id)
    generation = driver.answers[token].generation_id
    driver.sync(GROUP, first, generation, {first: assigned([0, 1]), second: assigned([])})
    return first, second


def held(driver: ChurnDriver, member: str) -> set[int]:
    group = driver.machine.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    one = group.members[member]
    return {*one.assigned.get(TOPIC, {}), *one.revoking.get(TOPIC, {})}


def test_what_a_cooperative_member_has_not_given_up_yet_goes_to_nobody_when_the_group_is_converted() -> None:
    driver = world()
    first, _ = classic_pair(driver)
    answer = modern(driver, "modern")
    assert answer.error_code == 0 and answer.assignment.topic_partitions == []
    group = driver.machine.groups[GROUP]
    assert isinstance(group, ConsumerGroup) and group.members[first].state is MemberState.UNREVOKED_PARTITIONS
    assert held(driver, first) == {0, 1, 2, 3}


def test_a_group_that_turns_back_and_over_again_still_knows_who_reads_what() -> None:
    driver = world()
    first, second = classic_pair(driver)
    modern(driver, "modern")
    before = held(driver, first)
    driver.beat(ConsumerGroupHeartbeatRequest(GROUP, "modern", -1))
    assert not isinstance(driver.machine.groups[GROUP], ConsumerGroup)
    modern(driver, "another")
    assert held(driver, first) == before == {0, 1, 2, 3}
    assert held(driver, second) == set()


def test_a_member_that_was_put_out_and_still_claims_partitions_begins_anew() -> None:
    driver = world()
    modern(driver, "modern")
    answer = driver.answers[cooperative(driver, "long-gone", [0, 1], 7)]
    assert answer.error_code == E.UNKNOWN_MEMBER_ID
    assert driver.answers[cooperative(driver, "long-gone")].error_code == 0


def test_a_group_that_turned_back_rebalances_even_if_the_coordinator_crashes_before_it_has() -> None:
    driver = world()
    first, second = classic_pair(driver)
    modern(driver, "modern")
    driver.beat(ConsumerGroupHeartbeatRequest(GROUP, "modern", -1))
    generation = driver.machine.groups[GROUP].generation  # type: ignore[union-attr]
    driver.restart()
    assert driver.heartbeat(GROUP, first, generation) == driver.heartbeat(GROUP, second, generation) == E.REBALANCE_IN_PROGRESS
