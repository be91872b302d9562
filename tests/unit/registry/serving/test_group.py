"""The calls of the group of registries, answered by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.heartbeat import HeartbeatResponse
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from tidelog.protocol.messages.leave_group import LeaveGroupRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tidelog.registry.serving import group
from tidelog.registry.serving.election import Assignment, Identity, read_assignment, write_assignment, write_identity

A, B = Identity("a", 1), Identity("b", 1)


def said(identity: Identity) -> bytes:
    return write_identity(identity, leads=False)


def run(call: Any, *answers: Any) -> tuple[Any, list[Any]]:
    asked = []
    step = next(call)
    try:
        for answer in answers:
            asked.append(step.request)
            step = call.send(answer)
    except StopIteration as end:
        return end.value, asked
    raise AssertionError(f"{step} is asked besides")


def test_the_leader_of_the_group_assigns_the_leading_registry_to_all() -> None:
    members = [JoinGroupResponseMember(member_id=name, metadata=said(each)) for name, each in (("x", B), ("y", A))]
    found, asked = run(
        group.join("g", "", said(B), 1000, 2000),
        JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="x"),
        JoinGroupResponse(generation_id=3, leader="x", member_id="x", members=members),
        SyncGroupResponse(assignment=write_assignment(Assignment(0, A, "y"))),
    )
    assert found == group.Membership("x", 3, Assignment(0, A, "y"))
    first, second, sync = asked
    assert isinstance(first, JoinGroupRequest)
    assert (first.member_id, second.member_id, second.protocol_type, second.protocols[0].name) == ("", "x", "sr", "v0")
    assert isinstance(sync, SyncGroupRequest)
    assert {each.member_id: read_assignment(each.assignment).leader for each in sync.assignments} == {"x": A, "y": A}


def test_others_wait_for_the_assignment() -> None:
    _, asked = run(
        group.join("g", "y", said(A), 1000, 2000),
        JoinGroupResponse(generation_id=3, leader="x", member_id="y"),
        SyncGroupResponse(assignment=write_assignment(Assignment(0, A, "y"))),
    )
    assert asked[1].assignments == []


def test_errors_of_the_group_are_raised_or_said() -> None:
    with pytest.raises(KafkaError):
        run(group.join("g", "y", b"", 1, 1), JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    member = group.Membership("y", 1, Assignment(0, None))
    assert run(group.heartbeat("g", member), HeartbeatResponse(error_code=27))[0] == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_leaves_is_named_in_the_form_that_all_brokers_know() -> None:
    call = group.leave("g", group.Membership("y", 1, Assignment(0, None)))
    step: Any = next(call)
    assert LeaveGroupRequest.decode(memoryview(step.request.encode(step.highest)), step.highest).member_id == "y"
