"""Who leads: what registries say of themselves, the choice, and the calls of the group."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.heartbeat import HeartbeatResponse
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tidelog.registry.serving import group
from tidelog.registry.serving.election import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    choose,
    read_assignment,
    read_identity,
    write_assignment,
    write_identity,
)

A, B = Identity("a", 1), Identity("b", 1)


def said(identity: Identity) -> bytes:
    return write_identity(identity, leads=False)


def test_members_say_where_they_are_in_confluents_form() -> None:
    wanted = '{"version":1,"host":"a","port":1,"master_eligibility":true,"scheme":"http","leader":false}'
    assert said(A) == wanted.encode()
    assert read_identity(b'{"version":1,"host":"a","port":1,"master_eligibility":true,"later":1}') == A


@pytest.mark.parametrize("raw", [b"", b"x", b"[]", b'{"host":"a"}', b'{"host":"a","port":"1"}', b"\xff"])
def test_what_is_no_registry_says_so(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_identity(raw)


def test_the_eligible_member_with_the_smallest_url_leads() -> None:
    assert choose({"2": said(A), "1": said(B)}) == Assignment(0, A, "2")
    assert choose({"1": said(B), "2": said(Identity("a", 1, eligible=False))}) == Assignment(0, B, "1")
    assert choose({"1": said(Identity("a", 1, eligible=False))}) == Assignment(0, None)
    assert choose({"1": said(B), "2": b"a console"}) == Assignment(0, B, "1")


def test_two_members_with_one_url_have_no_leader() -> None:
    assert choose({"1": said(A), "2": said(A)}) == Assignment(DUPLICATE_URLS, None)


def test_an_assignment_has_confluents_form() -> None:
    raw = write_assignment(Assignment(0, A, "m"))
    assert json.loads(raw) == {"version": 1, "error": 0, "master": "m", "master_identity": A.as_json(leads=True)}
    assert read_assignment(raw) == Assignment(0, A, "m")
    assert read_assignment(write_assignment(Assignment(1, None))) == Assignment(1, None)


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
