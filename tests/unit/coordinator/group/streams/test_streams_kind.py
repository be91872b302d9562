"""Streams groups among the others: leaving, timeouts, offsets, deletion, migration, and requests of other protocols."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ALL_TOPICS,
    ANN,
    AT_ONCE,
    BOB,
    IN,
    WORDS,
    StreamsDriver,
    active,
    kinds,
)
from tidelog.coordinator.group import describing
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.streams.streams_group import StreamsGroup, StreamsGroupState
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

DAY = 24 * 3_600_000


def pair(driver: StreamsDriver) -> None:
    """``ann`` and ``bob`` have one partition of each subtopology, both at epoch 3."""
    driver.enter_streams(ANN)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    kept = driver.runner(ANN).assigned.plain().active
    driver.streams_beat(ANN, 2, ({key: sorted(found) for key, found in kept.items()}, {}))
    driver.streams_beat(BOB, 3)
    assert {driver.runner(each).epoch for each in (ANN, BOB)} == {3}
    assert driver.streams().state is StreamsGroupState.STABLE


def test_a_second_member_gets_its_tasks_when_the_first_gave_them_up() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    waiting = driver.enter_streams(BOB)
    assert (waiting.member_epoch, active(waiting)) == (3, {})
    revoking = driver.streams_beat(ANN, 2)
    assert (revoking.member_epoch, active(revoking)) == (2, {"0": [0], "1": [0]}), "the epoch stays until the tasks are gone"
    assert active(driver.streams_beat(BOB, 3)) is None
    assert driver.streams_beat(ANN, 2, ({"0": [0], "1": [0]}, {})).member_epoch == 3
    assert active(driver.streams_beat(BOB, 3)) == {"0": [1], "1": [1]}


def test_a_member_that_leaves_gives_its_tasks_to_the_others() -> None:
    driver = StreamsDriver()
    pair(driver)
    written = len(driver.log)
    left = driver.streams_beat(BOB, -1)
    assert (left.error_code, left.member_epoch, left.active_tasks) == (0, -1, None)
    assert kinds(driver.log[written:]) == [-22, -21, -19, 17]
    assert active(driver.streams_beat(ANN, 3)) == {"0": [0, 1], "1": [0, 1]}


def test_silent_members_are_removed_one_after_another() -> None:
    driver = StreamsDriver()
    pair(driver)
    driver.advance(30_000)
    driver.streams_beat(ANN, 3)
    driver.advance(15_000)
    assert set(driver.streams().members) == {ANN}
    driver.advance(45_000)
    assert (driver.streams().members, driver.streams().epoch) == ({}, 5)


def test_a_new_coordinator_gives_every_member_a_full_session() -> None:
    driver = StreamsDriver()
    pair(driver)
    driver.advance(44_000)
    driver.restart()
    driver.advance(44_000)
    assert set(driver.streams().members) == {ANN, BOB}
    driver.advance(1_000)
    assert driver.streams().members == {}


def test_a_member_that_keeps_its_tasks_too_long_is_removed() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN, rebalance_timeout_ms=10_000)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    driver.restart()
    for _ in range(2):
        driver.advance(4_999)
        assert driver.streams_beat(ANN, 2, ({"0": [0, 1], "1": [0, 1]}, {})).error_code == 0
    driver.advance(2)
    assert set(driver.streams().members) == {BOB}


def test_two_threads_of_a_process_never_have_a_task_in_two_roles() -> None:
    driver = StreamsDriver()
    driver.configure("g", streams_num_standby_replicas="1")
    driver.enter_streams(ANN, "p")
    driver.enter_streams(BOB, "p")
    driver.enter_streams("cid", "q")
    for _ in range(6):
        for name in (ANN, BOB, "cid"):
            member = driver.runner(name)
            plain = member.assigned.plain()
            owns = tuple({key: sorted(found) for key, found in role.items()} for role in (plain.active, plain.standby))
            driver.streams_beat(name, member.epoch, (owns[0], owns[1]))
    tasks = {name: driver.runner(name).assigned.plain() for name in (ANN, BOB, "cid")}
    assert driver.streams().state is StreamsGroupState.STABLE
    assert sum(len(found) for each in tasks.values() for found in each.standby.values()) == 2, "both tasks with a store"
    for process in ((ANN, BOB), ("cid",)):
        held = [
            (key, one)
            for name in process
            for role in (tasks[name].active, tasks[name].standby)
            for key in role
            for one in role[key]
        ]
        assert len(held) == len(set(held)), process


# -- offsets -------------------------------------------------------------------------------------------------------------


def test_commits_are_checked_against_the_epochs_of_tasks() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    assert driver.commit("g", {(IN, 0): 5}, ANN, 2) == [0]
    assert driver.commit("g", {(IN, 1): 5}, ANN, 2) == [0], "while it is giving the task up"
    driver.streams_beat(ANN, 2, ({"0": [0], "1": [0]}, {}))
    driver.streams_beat(BOB, 3)
    stale = int(ErrorCode.STALE_MEMBER_EPOCH)
    assert driver.commit("g", {(IN, 0): 6, (WORDS, 0): 6}, ANN, 2) == [0, 0], "an old epoch, for tasks that it kept"
    assert driver.commit("g", {(IN, 1): 6}, ANN, 2) == [stale]
    assert driver.commit("g", {(IN, 0): 6, (IN, 1): 6}, ANN, 2) == [stale, stale], "as a whole"
    assert driver.commit("g", {("other", 0): 6}, ANN, 2) == [stale]
    assert driver.commit("g", {(IN, 1): 6}, BOB, 2) == [stale], "it got the task with epoch 3"
    assert driver.commit("g", {(IN, 0): 7}, ANN, 4) == [stale]
    assert driver.commit("g", {(IN, 0): 7}, "dan", 3) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.commit("g", {(IN, 0): 7}) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.commit("g", {(IN, 0): 7}, ANN, 3, version=8) == [ErrorCode.UNSUPPORTED_VERSION]
    assert driver.machine.offsets.stored.of("g")[IN, 0].offset == 6


def test_transactional_commits_get_the_errors_of_generations() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)

    def commit(member: str, epoch: int) -> int:
        token = driver.token()
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = TxnOffsetCommitRequest(
            transactional_id="t", group_id="g", member_id=member, generation_id=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=IN, partitions=[partition])],
        )  # fmt: skip
        outcome = driver.machine.offsets.commit_transactional(token, request, driver.now)
        return int(outcome.replies[0].response.topics[0].partitions[0].error_code)

    assert commit(ANN, 2) == 0
    assert commit("", -1) == 0, "a producer that names no member"
    assert commit(ANN, 3) == ErrorCode.ILLEGAL_GENERATION
    assert commit("dan", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_an_empty_group_may_be_set() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.streams_beat(ANN, -1)
    assert driver.commit("g", {(IN, 0): 5}) == [0]


def test_fetches_are_for_members_of_the_epoch_and_for_administrators() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    error = driver.machine.offsets.fetch_error
    assert error("g", None, -1) is None
    assert error("g", ANN, 2) is None
    assert error("g", ANN, 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert error("g", "dan", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_topics_that_are_read_are_neither_deleted_nor_expired() -> None:
    driver = StreamsDriver(topics={**ALL_TOPICS, "old": 1})
    driver.enter_streams(ANN)
    driver.commit("g", {(IN, 0): 5, ("old", 0): 7}, ANN, 2)
    assert driver.delete_offsets("g", IN) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert driver.delete_offsets("g", WORDS) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    for _ in range(8 * DAY // 40_000):
        driver.advance(40_000)
        driver.streams_beat(ANN, 2)
    assert list(driver.machine.offsets.stored.of("g")) == [(IN, 0)]
    driver.streams_beat(ANN, -1)
    assert driver.delete_offsets("g", IN) == 0


def test_a_group_without_members_ends_with_its_offsets() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.commit("g", {(IN, 0): 5}, ANN, 2)
    driver.streams_beat(ANN, -1)
    driver.advance(6 * DAY)
    assert "g" in driver.machine.groups
    written = len(driver.log)
    driver.advance(2 * DAY)
    assert (dict(driver.machine.groups), kinds(driver.log[written:])) == ({}, [-1, -20, -17, -23])
    driver.restart()
    assert dict(driver.machine.groups) == {}


# -- other protocols -----------------------------------------------------------------------------------------------------


def delete(driver: StreamsDriver) -> ErrorCode:
    token = driver.token()
    driver.run(driver.machine.offsets.delete_group(token, "g", lambda error: error))
    answer = driver.answers[token]
    assert isinstance(answer, ErrorCode)
    return answer


def test_only_a_group_without_members_is_deleted() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    assert delete(driver) is ErrorCode.NON_EMPTY_GROUP
    driver.streams_beat(ANN, -1)
    assert delete(driver) is ErrorCode.NONE
    assert dict(driver.machine.groups) == {}


def test_an_empty_classic_group_becomes_a_streams_group_with_its_offsets_and_back() -> None:
    driver = StreamsDriver()
    member, _ = driver.join_twice("g", kind="stream")
    driver.advance(3_000)
    driver.leave("g", (member, None))
    driver.commit("g", {(IN, 0): 5})
    written = len(driver.log)
    assert driver.enter_streams(ANN).error_code == 0
    assert kinds(driver.log[written:])[:2] == [-2, 19]
    assert driver.machine.offsets.stored.of("g")[IN, 0].offset == 5
    driver.restart()
    assert isinstance(driver.machine.groups["g"], StreamsGroup)
    busy = driver.answers[driver.join("g", kind="stream")]
    assert busy.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    driver.streams_beat(ANN, -1)
    written = len(driver.log)
    driver.join_twice("g", kind="stream")
    assert kinds(driver.log[written:])[:4] == [-20, -17, -23, 2]
    driver.advance(3_000)
    driver.restart()
    assert driver.machine.classic_group("g") is not None
    assert driver.machine.offsets.stored.of("g")[IN, 0].offset == 5


def test_members_of_the_classic_protocol_are_unknown() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
    assert driver.heartbeat("g", ANN, 2) == unknown
    assert driver.answers[driver.sync("g", ANN, 2)].error_code == unknown
    assert driver.leave("g", (ANN, None)).members[0].error_code == unknown


def test_the_group_is_listed_with_its_type_and_state() -> None:
    driver = StreamsDriver(topics={})
    driver.enter_streams(ANN)
    (listed,) = describing.list_groups(driver.machine, ["NotReady"], ["Streams"])
    assert (listed.group_id, listed.group_type, listed.protocol_type, listed.group_state) == (
        "g",
        "streams",
        "streams",
        "NotReady",
    )
    assert describing.list_groups(driver.machine, [], ["consumer"]) == []


def test_a_member_put_out_by_a_test_leaves() -> None:
    driver = StreamsDriver(AT_ONCE)
    pair(driver)
    driver.run(driver.machine.end_session("g", ANN, driver.now))
    assert driver.machine.member_ids("g") == [BOB]


def test_the_broker_decides_the_times_within_which_a_group_may_set_its_own() -> None:
    driver = StreamsDriver(GroupSettings())
    driver.configure("g", streams_heartbeat_interval_ms="7000", streams_initial_rebalance_delay_ms="0")
    answer = driver.enter_streams(ANN)
    assert (answer.heartbeat_interval_ms, answer.status) == (7_000, [])
