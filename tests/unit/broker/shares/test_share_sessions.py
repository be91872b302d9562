"""Share sessions: epochs, places, and the connection that they belong to."""

from __future__ import annotations

from tidelog.broker.shares.share_sessions import CLOSE, MOST_PLACES, Place, ShareSession, ShareSessions
from tidelog.model.errors import ErrorCode

A, B, C = (Place(b"t" * 16, index) for index in range(3))


def opened(sessions: ShareSessions, member: str = "m", owner: object = None) -> ShareSession:
    found = sessions.open("g", member, owner)
    assert isinstance(found, ShareSession)
    return found


def test_each_request_takes_one_epoch() -> None:
    sessions = ShareSessions(2)
    assert sessions.next_request("g", "m", 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    session = opened(sessions)
    assert sessions.next_request("g", "m", 1) is session
    assert sessions.next_request("g", "m", 1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.next_request("g", "m", 3) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sessions.next_request("g", "m", 2) is session
    session.epoch = 2_147_483_647
    assert sessions.next_request("g", "m", 1) is session
    assert sessions.next_request("g", "m", CLOSE) is session
    assert sessions.close(session) and not sessions.close(session)
    assert sessions.next_request("g", "m", CLOSE) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_there_are_so_many_sessions_and_a_member_replaces_its_own() -> None:
    sessions = ShareSessions(1)
    first = opened(sessions)
    assert sessions.open("g", "other", None) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    second = opened(sessions)
    assert sessions.find("g", "m") is second and not sessions.close(first)
    assert len(sessions) == 1 and sessions.has_group("g") and not sessions.has_group("h")


def test_partitions_are_read_from_another_one_on_each_time() -> None:
    session = opened(ShareSessions(1))
    session.add([A, B, C])
    session.add([A])
    session.epoch = 1
    assert session.rotated() == [B, C, A]
    session.forget([B])
    session.epoch = 2
    assert session.rotated() == [A, C]
    session.forget([A, C])
    assert session.rotated() == []


def test_a_session_ends_with_its_connection_and_no_other() -> None:
    sessions = ShareSessions(9)
    old, new = object(), object()
    opened(sessions, "m", old)
    again = opened(sessions, "m", new)
    other = opened(sessions, "n", old)
    other.add([A])
    assert sessions.partition_count == 1
    assert sessions.lost(old) == [other]
    assert sessions.find("g", "m") is again
    assert sessions.evictions == 1


def test_a_session_names_so_many_partitions() -> None:
    session = opened(ShareSessions(1))
    many = [Place(b"t" * 16, index) for index in range(MOST_PLACES)]
    assert session.add(many) and session.add(many[:5])
    assert not session.add([A, Place(b"u" * 16, 0)])
    assert len(session.partitions) == MOST_PLACES
    session.forget([A])
    assert session.add([Place(b"u" * 16, 0)])


def test_the_groups_with_sessions_are_counted() -> None:
    sessions = ShareSessions(9)
    owner = object()
    opened(sessions, "m", owner)
    opened(sessions, "m", owner)
    opened(sessions, "n", owner)
    sessions.close(opened(sessions, "n", owner))
    assert sessions.has_group("g")
    assert len(sessions.lost(owner)) == 1
    assert not sessions.has_group("g")


def test_a_session_that_was_replaced_is_not_the_member_s() -> None:
    sessions = ShareSessions(9)
    former = opened(sessions)
    assert sessions.holds(former)
    opened(sessions)
    assert not sessions.holds(former)


def test_a_response_names_what_the_member_does_not_know() -> None:
    none, moved = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER
    session = opened(ShareSessions(1))
    session.add([A])
    assert session.answers(A, none, has_records=False), "the first response has all"
    session.epoch = 1
    session.add([B])
    assert not session.answers(A, none, has_records=False)
    assert session.answers(B, none, has_records=False), "it is new"
    assert not session.answers(B, none, has_records=False)
    assert session.answers(B, none, has_records=True)
    assert session.answers(A, moved, has_records=False)
    assert session.answers(A, moved, has_records=False), "errors are repeated"
    assert session.answers(A, none, has_records=False), "the error is over"
    assert not session.answers(A, none, has_records=False)
