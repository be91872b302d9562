"""A share group in requests of other protocols, in lists, and at its end."""

from __future__ import annotations

from tests.unit.coordinator.group.share.share_driver import ANN, ShareDriver
from tidelog.coordinator.group import describing
from tidelog.coordinator.group.classic.joining import Join
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tidelog.protocol.messages.sync_group import SyncGroupRequest


def ask(driver: ShareDriver, call: object) -> object:
    token = driver.token()
    driver.run(call(token))  # type: ignore[operator]
    return driver.answers[token]


def test_members_of_other_protocols_are_refused() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    machine = driver.machine
    codes = [
        ask(driver, lambda token: machine.join(Join(token, 9, "c", "/h", request), driver.now)),
        ask(driver, lambda token: machine.sync(token, SyncGroupRequest(group_id="g", member_id=ANN), driver.now)),
        ask(driver, lambda token: machine.heartbeat(token, HeartbeatRequest(group_id="g", member_id=ANN), driver.now)),
    ]
    assert [each.error_code for each in codes] == [  # type: ignore[attr-defined]
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    left = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=ANN)])
    answer = ask(driver, lambda token: machine.leave(token, left, 5, driver.now))
    assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID  # type: ignore[attr-defined]


def test_nothing_is_committed_to_a_share_group() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    topics = [
        OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)])
    ]
    commit = OffsetCommitRequest(group_id="g", topics=topics)
    answer = ask(driver, lambda token: driver.machine.offsets.commit(token, commit, 9, driver.now))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND  # type: ignore[attr-defined]
    assert driver.machine.offsets.fetch_error("g", None, -1) is None, "none is found, as in a group that does not exist"


def test_it_is_listed_and_never_expires() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    (listed,) = describing.list_groups(driver.machine, ["stable"], ["share"])
    assert (listed.group_id, listed.protocol_type, listed.group_type, listed.group_state) == ("g", "share", "share", "Stable")
    assert describing.describe(driver.machine, "g", 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.share_beat(ANN, -1)
    driver.advance(10 * 24 * 3_600_000)
    assert "g" in driver.machine.groups


def test_an_empty_group_is_deleted_for_good() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    machine = driver.machine
    assert ask(driver, lambda token: machine.offsets.delete_group(token, "g", lambda error: error)) is ErrorCode.NON_EMPTY_GROUP
    driver.share_beat(ANN, -1)
    assert ask(driver, lambda token: machine.offsets.delete_group(token, "g", lambda error: error)) is ErrorCode.NONE
    driver.restart()
    assert "g" not in driver.machine.groups
