from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.replication.followed import EPOCH, follow, followed, led
from tests.unit.replication.world import NOW_MS, World
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from tidelog.replication.alter_partition_requests import IsrChanges
from tidelog.replication.partition import Partition


def about_to_grow() -> tuple[World, Partition, IsrChanges]:
    world, partition = followed(isr=(1,))
    follow(partition, 0)
    return world, partition, world.manager.isr_changes


def ask(changes: IsrChanges) -> AlterPartitionRequest:
    request = changes.next_request(9)
    assert request is not None
    return request


def answer(partition: Partition, error: int = 0, **fields: object) -> AlterPartitionResponse:
    given = ResponsePartitionData(partition_index=0, error_code=error, leader_id=1, isr=[1, 2], partition_epoch=1)
    for name, value in fields.items():
        setattr(given, name, value)
    return AlterPartitionResponse(topics=[ResponseTopicData(topic_id=partition.topic_id, partitions=[given])])


def pending(partition: Partition) -> tuple[int, ...] | None:
    assert partition.leadership is not None
    return partition.leadership.pending


def test_a_request_names_each_member_with_its_epoch() -> None:
    _, partition, changes = about_to_grow()
    request = ask(changes)
    (topic,) = request.topics
    (asked,) = topic.partitions
    assert (request.broker_id, request.broker_epoch, topic.topic_id) == (1, 9, partition.topic_id)
    assert [(each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs] == [(1, 9), (2, EPOCH)]
    assert (asked.leader_epoch, asked.partition_epoch, asked.leader_recovery_state) == (0, 0, 0)
    assert changes.next_request(9) is None, "one at a time"


def test_what_the_controller_agrees_to_is_in_force_before_the_metadata_says_so() -> None:
    _, partition, changes = about_to_grow()
    ask(changes)
    assert changes.answered(answer(partition), NOW_MS)
    assert (partition.isr, partition.partition_epoch, pending(partition)) == ((1, 2), 1, None)
    assert changes.expansions == 1
    partition.update_metadata(led((1,), partition_epoch=0), NOW_MS)
    assert partition.isr == (1, 2), "older metadata takes nothing back"


def test_a_replica_that_may_not_join_is_given_up_until_it_fetches_again() -> None:
    _, partition, changes = about_to_grow()
    ask(changes)
    assert changes.answered(answer(partition, ErrorCode.INELIGIBLE_REPLICA), NOW_MS)
    assert pending(partition) is None and not changes.ready
    follow(partition, 0)
    assert pending(partition) == (1, 2) and changes.ready


@pytest.mark.parametrize("error", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NEW_LEADER_ELECTED])
def test_when_the_controller_knows_more_its_metadata_is_waited_for(error: ErrorCode) -> None:
    _, partition, changes = about_to_grow()
    ask(changes)
    changes.answered(answer(partition, error), NOW_MS)
    assert not changes.ready and pending(partition) == (1, 2)
    partition.update_metadata(led((1,), partition_epoch=3), NOW_MS)
    assert ask(changes).topics[0].partitions[0].partition_epoch == 3, "asked anew, with what is known now"


def test_other_errors_and_lost_answers_are_asked_again() -> None:
    _, partition, changes = about_to_grow()
    ask(changes)
    changes.answered(answer(partition, ErrorCode.UNKNOWN_SERVER_ERROR), NOW_MS)
    assert changes.ready
    ask(changes)
    changes.failed()
    assert changes.ready
    ask(changes)
    assert not changes.answered(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH), NOW_MS)
    assert changes.ready
    ask(changes)
    assert not changes.answered(AlterPartitionResponse(), NOW_MS), "an answer that leaves it out"
    assert changes.ready


def test_an_answer_that_metadata_has_overtaken_changes_nothing() -> None:
    _, partition, changes = about_to_grow()
    ask(changes)
    partition.update_metadata(led((1,), partition_epoch=4), NOW_MS)
    changes.answered(answer(partition), NOW_MS)
    assert (partition.isr, partition.partition_epoch) == ((1,), 4)


def test_a_change_that_nobody_wants_any_more_is_not_asked_for() -> None:
    _, partition, changes = about_to_grow()
    partition.update_metadata(replace(led((1,), partition_epoch=1, leader_epoch=1), leader=2), NOW_MS)
    assert changes.next_request(9) is None and not changes.ready


def test_a_shrink_that_was_agreed_to_is_counted() -> None:
    world, partition = followed()
    partition.ask_isr((1,))
    changes = world.manager.isr_changes
    ask(changes)
    changes.answered(answer(partition, isr=[1]), NOW_MS)
    assert (changes.shrinks, changes.expansions, partition.isr) == (1, 0, (1,))


def test_metadata_that_is_loaded_again_does_not_settle_what_is_asked_for() -> None:
    world, partition, changes = about_to_grow()
    ask(changes)
    world.manager.load(world.image, NOW_MS)
    assert pending(partition) == (1, 2)
    assert partition.leadership is not None and partition.leadership.maximal_isr == {1, 2}, "it may be in force by now"
