"""The group of the registries as calls of tidelog's client: join, sync, heartbeat, leave (KIP-394: a member id comes first)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Coordinator
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.protocol.messages.leave_group import LeaveGroupRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.registry.serving.election import PROTOCOL, PROTOCOL_TYPE, Assignment, choose, read_assignment, write_assignment

HIGHEST_JOIN = 5
"""Without KIP-559's and later fields, which no member needs."""
HIGHEST_LEAVE = 2


@dataclass(frozen=True, slots=True)
class Membership:
    """A member of one generation, and whom it was assigned."""

    member_id: str
    generation: int
    assignment: Assignment


def join(group: str, member_id: str, metadata: bytes, session_ms: int, rebalance_ms: int) -> Call[Membership]:
    """Join, wait for the others, and sync. KafkaError, such as UNKNOWN_MEMBER_ID and REBALANCE_IN_PROGRESS; ValueError."""
    while True:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata)],
        )
        joined = yield Ask(request, Coordinator(group), HIGHEST_JOIN, lambda answer: int(answer.error_code))
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            break
        member_id = joined.member_id
    check(joined.error_code)
    assignments = []
    if joined.leader == joined.member_id:
        chosen = write_assignment(choose({each.member_id: bytes(each.metadata) for each in joined.members}))
        assignments = [SyncGroupRequestAssignment(member_id=each.member_id, assignment=chosen) for each in joined.members]
    sync = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
    )
    synced = yield Ask(sync, Coordinator(group), 3, lambda answer: int(answer.error_code))
    check(synced.error_code)
    return Membership(joined.member_id, joined.generation_id, read_assignment(bytes(synced.assignment)))


def heartbeat(group: str, member: Membership) -> Call[ErrorCode]:
    """The error of one heartbeat."""
    request = HeartbeatRequest(group_id=group, generation_id=member.generation, member_id=member.member_id)
    answer = yield Ask(request, Coordinator(group), 3, lambda found: int(found.error_code))
    return ErrorCode(answer.error_code)


def leave(group: str, member: Membership) -> Call[None]:
    """Leave, so that the others need not wait for the session's end."""
    request = LeaveGroupRequest(group_id=group, member_id=member.member_id)
    yield Ask(request, Coordinator(group), HIGHEST_LEAVE)
