"""StreamsGroupHeartbeat: joining, the topology, delays, statuses, endpoints, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.coordinator.group.consumer_driver import image_of
from tests.unit.coordinator.group.driver import stable_group
from tests.unit.coordinator.group.streams.streams_driver import (
    ALL_TOPICS,
    ANN,
    AT_ONCE,
    BOB,
    COUNTS,
    IN,
    WORDS,
    StreamsDriver,
    active,
    kinds,
    statuses,
    word_count,
)
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.model.errors import ErrorCode


def test_the_first_member_gets_all_tasks_and_the_records_are_in_kafkas_order() -> None:
    driver = StreamsDriver()
    answer = driver.enter_streams(ANN)
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (0, 2, 5_000)
    assert active(answer) == {"0": [0, 1], "1": [0, 1]}
    assert answer.standby_tasks == answer.warmup_tasks == answer.status == []
    assert kinds(driver.log) == [19, 23, 17, 21, 20, 22]
    assert driver.streams().state is StreamsGroupState.STABLE
    assert active(driver.streams_beat(ANN, 2)) is None, "only a change has tasks"
    before = driver.streams()
    driver.restart()
    after = driver.streams()
    assert (after.members, after.target, after.topology, after.epoch) == (
        before.members,
        before.target,
        before.topology,
        before.epoch,
    )
    assert (after.assignment_configs, after.validated_topology_epoch) == ({"num.standby.replicas": "0"}, 0)


def test_a_new_coordinator_does_not_rebalance() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.restart()
    written = len(driver.log)
    answer = driver.streams_beat(ANN, 2, ({"0": [0, 1], "1": [0, 1]}, {}))
    assert (answer.member_epoch, driver.log[written:]) == (2, [])


def test_internal_topics_are_ordered_and_the_group_is_ready_when_they_exist() -> None:
    driver = StreamsDriver(topics={IN: 2})
    answer = driver.enter_streams(ANN)
    assert (statuses(answer), driver.missing, active(answer)) == ([3], [COUNTS, WORDS], {})
    assert driver.streams().state is StreamsGroupState.NOT_READY
    driver.streams_beat(ANN, answer.member_epoch)
    assert driver.missing == [COUNTS, WORDS], "until they exist"
    driver.set_topics(ALL_TOPICS)
    ready = driver.streams_beat(ANN, answer.member_epoch)
    assert (statuses(ready), driver.missing, ready.member_epoch) == ([], [], 3)
    assert active(ready) == {"0": [0, 1], "1": [0, 1]}


def test_a_missing_source_topic_is_told_and_its_loss_takes_the_tasks_away() -> None:
    driver = StreamsDriver(topics={})
    assert statuses(driver.enter_streams(ANN)) == [1]
    driver.set_topics(ALL_TOPICS)
    driver.streams_beat(ANN, 2)
    driver.set_topics({WORDS: 2, COUNTS: 2})
    lost = driver.streams_beat(ANN, 3)
    assert (statuses(lost), active(lost), driver.streams().state) == ([1], {}, StreamsGroupState.NOT_READY)
    gone = driver.streams_beat(ANN, 3, ({}, {}))
    assert (gone.member_epoch, driver.streams().validated_topology_epoch) == (4, -1)


def test_a_wrong_partition_count_is_told() -> None:
    driver = StreamsDriver(topics={IN: 2, WORDS: 3, COUNTS: 3})
    assert statuses(driver.enter_streams(ANN)) == [2]


def test_another_topology_is_refused_and_an_older_one_is_told_to_be_stale() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN, topology=word_count(epoch=3))
    assert driver.enter_streams(BOB, topology=word_count(3, "other")).error_code == ErrorCode.INVALID_REQUEST
    assert driver.enter_streams(BOB, topology=word_count(4)).error_code == ErrorCode.INVALID_REQUEST
    stale = driver.enter_streams(BOB, topology=word_count(2, "other"))
    assert (stale.error_code, statuses(stale)) == (0, [0])
    turned = word_count(3)
    turned.subtopologies.reverse()
    assert driver.enter_streams("dan", topology=turned).error_code == 0


def test_a_topology_that_cannot_work_is_refused_and_leaves_no_group() -> None:
    driver = StreamsDriver()
    looped = word_count()
    looped.subtopologies.pop(0)
    assert driver.enter_streams(ANN, topology=looped).error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert (driver.log, dict(driver.machine.groups)) == ([], {})


def test_changed_metadata_raise_the_epoch_and_unchanged_ones_do_not() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    assert driver.streams_beat(ANN, 2, client_tags=[]).member_epoch == 2
    assert driver.streams_beat(ANN, 2, rack_id="r1").member_epoch == 3
    assert driver.runner(ANN).rack_id == "r1"


def test_a_full_group_takes_no_more_members() -> None:
    driver = StreamsDriver(AT_ONCE._replace(streams_max_size=1))
    driver.enter_streams(ANN)
    assert driver.enter_streams(BOB).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.streams_beat(ANN, 2).error_code == 0


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("dan", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("dan", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (ANN, 7, ErrorCode.FENCED_MEMBER_EPOCH),
        (ANN, 1, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_unknown_members_and_wrong_epochs_are_refused(member: str, epoch: int, error: ErrorCode) -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    assert driver.streams_beat(member, epoch).error_code == error


def test_the_previous_epoch_is_fine_for_a_member_that_missed_the_answer() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.streams_beat(ANN, 2, rack_id="r")
    assert driver.streams_beat(ANN, 2, ({"0": [0]}, {})).member_epoch == 3
    assert driver.streams_beat(ANN, 2, ({"0": [0]}, {"1": [0]})).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.streams_beat(ANN, 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_missed_its_tasks_gets_them_again() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    driver.streams_beat(ANN, 2, ({"0": [0], "1": [0]}, {}))
    driver.streams_beat(BOB, 3)
    assert active(driver.streams_beat(BOB, 3)) is None
    assert active(driver.streams_beat(BOB, 3, ({}, {}))) == {"0": [1], "1": [1]}, "it reports that it has none"
    assert active(driver.streams_beat(BOB, 3, ({"0": [1], "1": [1]}, {}))) is None
    assert active(driver.streams_beat(ANN, 2, ({"0": [0]}, {}))) == {"0": [0], "1": [0]}, "its epoch is behind"


def test_a_task_that_does_not_exist_is_refused() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    for tasks in ({"0": [2]}, {"2": [0]}):
        assert driver.streams_beat(ANN, 2, (tasks, {})).error_code == ErrorCode.INVALID_REQUEST


def test_heartbeats_to_groups_of_other_protocols_and_to_none_are_refused() -> None:
    driver = StreamsDriver(topics={**ALL_TOPICS, "t": 1})
    assert driver.streams_beat(ANN, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.streams_beat(ANN, -1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.enter("consumers", "a")
    stable_group(driver, group="classics")
    for group in ("consumers", "classics"):
        assert driver.enter_streams(ANN, group=group).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.enter_streams(ANN)
    assert driver.enter("g", "a").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_record_that_is_too_large_is_refused() -> None:
    driver = StreamsDriver(AT_ONCE._replace(max_record_bytes=100))
    assert driver.enter_streams(ANN).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert driver.log == []


def test_the_hash_of_topics_raises_the_epoch_when_a_source_grows() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.image = replace(image_of({**ALL_TOPICS, "unrelated": 9}, 2), configs=driver.image.configs)
    driver.run(driver.machine.topics_changed(created=True))
    assert driver.streams_beat(ANN, 2).member_epoch == 2
    driver.set_topics({IN: 3, WORDS: 2, COUNTS: 2})
    assert statuses(driver.streams_beat(ANN, 2)) == [2], "the internal topics have too few partitions now"
