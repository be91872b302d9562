"""Streams groups among the others: leaving, timeouts, offsets, deletion, migration, and requests of other protocols."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    BOB,
    DAY,
    IN,
    StreamsDriver,
    active,
    kinds,
)
from tidelog.coordinator.group import describing
from tidelog.coordinator.group.streams.streams_group import StreamsGroup
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.model.errors import ErrorCode


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
