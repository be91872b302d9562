"""JoinGroup: which clients may join a classic group, under which id, and whether that starts a rebalance.

A dynamic member joins in two steps since v4: it gets an id first (KIP-394), so that a client that never comes back leaves no
trace. A static member (KIP-345) keeps its place under its instance id: if it comes back with the same protocols, there is no
rebalance. A member that repeats a join because it lost the response gets the same response again.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.records import group_record
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.topic_metadata import Describable
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.model.machine import Token
from tidelog.model.ports import Rng
from tidelog.protocol.messages.join_group import JoinGroupRequest

KNOWN_MEMBER_ID_FROM = 4
STATIC_FROM = 5
SKIP_ASSIGNMENT_FROM = 9
LONGEST_PREFIX = 8_000
"""Characters of a client id or instance id that a member id includes: even at four bytes each, and with our suffix, the id
fits the wire and the log format."""


class Join(NamedTuple):
    """A JoinGroup with what its connection knows about the client."""

    token: Token
    version: int
    client_id: str
    client_host: str
    request: JoinGroupRequest
    describable: Describable | None = None
    """The topics that a pattern of the group may match when this join has the patterns resolved; None: any."""

    @property
    def protocols(self) -> tuple[tuple[str, bytes], ...]:
        """Names and metadata, in the client's order of preference."""
        return tuple((protocol.name, bytes(protocol.metadata)) for protocol in self.request.protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The session timeout in v0, which has no rebalance timeout."""
        timeout = self.request.rebalance_timeout_ms
        return timeout if timeout >= 0 else self.request.session_timeout_ms


class Joiner:
    """Decides joins for all groups of one coordinator."""

    __slots__ = ("_rng", "_settings")

    def __init__(self, settings: GroupSettings, rng: Rng) -> None:
        self._settings = settings
        self._rng = rng

    def join(self, group: ClassicGroup, join: Join, effects: Effects, now_ms: int) -> None:
        """Answers immediately, or parks the join in the group until the rebalance ends."""
        error = self._refusal(group, join)
        if error is not None:
            effects.reply(join.token, rebalance.join_error(join.version, join.request.member_id, error))
        elif join.request.member_id == "":
            self._join_without_id(group, join, effects, now_ms)
        else:
            self._join_with_id(group, join, effects, now_ms)
        rebalance.maybe_end(group, effects, now_ms)

    def _refusal(self, group: ClassicGroup, join: Join) -> ErrorCode | None:
        request = join.request
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if self._is_full(group, request.member_id):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not group.supports(request.protocol_type, (protocol.name for protocol in request.protocols)):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return None

    def _is_full(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the group has no room for this member. A current member always has its place; during a rebalance only
        members that have rejoined count."""
        limit = self._settings.max_size
        if group.state in {GroupState.EMPTY, GroupState.DEAD} or len(group.members) < limit:
            return False
        if group.state is GroupState.PREPARING_REBALANCE:
            known = member_id in group.pending or (member_id in group.members and group.members[member_id].join_token is not None)
            return not known and sum(1 for member in group.members.values() if member.join_token is not None) >= limit
        return member_id not in group.members and len(group.members) >= limit

    # -- without an id -------------------------------------------------------------------------------------------------------

    def _join_without_id(self, group: ClassicGroup, join: Join, effects: Effects, now_ms: int) -> None:
        instance_id = join.request.group_instance_id
        unique = uuid_to_text(random_uuid(self._rng))
        if instance_id is not None:
            member_id = f"{instance_id[:LONGEST_PREFIX]}-{unique}"
            if instance_id in group.static:
                self._come_back(group, instance_id, member_id, join, effects, now_ms)
            else:
                self._add(group, member_id, join, effects, now_ms)
            return
        member_id = f"{join.client_id[:LONGEST_PREFIX]}-{unique}"
        if join.version >= KNOWN_MEMBER_ID_FROM:
            group.pending[member_id] = now_ms + join.request.session_timeout_ms
            effects.reply(join.token, rebalance.join_error(join.version, member_id, ErrorCode.MEMBER_ID_REQUIRED))
        else:
            self._add(group, member_id, join, effects, now_ms)

    def _add(self, group: ClassicGroup, member_id: str, join: Join, effects: Effects, now_ms: int) -> None:
        request = join.request
        member = Member(
            member_id,
            instance_id=request.group_instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=join.protocols,
        )
        member.is_new = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        self._park(member, join, now_ms)
        group.new_member_joined = True
        rebalance.maybe_begin(group, effects, self._settings, now_ms, f"{member_id} joins")

    def _park(self, member: Member, join: Join, now_ms: int) -> None:
        member.join_token = join.token
        member.join_version = join.version
        # A new member cannot heartbeat until its first rebalance ends, so its session timeout is longer.
        own = self._settings.new_member_join_timeout_ms if member.is_new else member.session_timeout_ms
        member.deadline_ms = now_ms + own

    # -- with an id ----------------------------------------------------------------------------------------------------------

    def _join_with_id(self, group: ClassicGroup, join: Join, effects: Effects, now_ms: int) -> None:
        request = join.request
        error = self._identity_error(group, request.member_id, request.group_instance_id)
        if error is not None:
            effects.reply(join.token, rebalance.join_error(join.version, request.member_id, error))
            return
        if request.member_id in group.pending:
            self._add(group, request.member_id, join, effects, now_ms)
            return
        member = group.members[request.member_id]
        unchanged = member.protocols == join.protocols
        # A leader that rejoins a stable group asks for a rebalance: its topics may have changed.
        follows = group.state is GroupState.STABLE and group.leader != member.member_id
        if unchanged and (follows or group.state is GroupState.COMPLETING_REBALANCE):
            self._repeat(group, member, join, effects, now_ms)
        else:
            self._rejoin(group, member, join, effects, now_ms, "leads and rejoins" if unchanged else "supports something else")

    @staticmethod
    def _identity_error(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode | None:
        if instance_id is not None:
            current = group.static.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return None if current == member_id else ErrorCode.FENCED_INSTANCE_ID
        if member_id in group.members or member_id in group.pending:
            return None
        return ErrorCode.UNKNOWN_MEMBER_ID

    def _repeat(self, group: ClassicGroup, member: Member, join: Join, effects: Effects, now_ms: int) -> None:
        """Repeats the response of this generation."""
        self._park(member, join, now_ms)
        rebalance.answer_join(group, member, effects, rebalance.join_response(group, member), now_ms)

    def _rejoin(self, group: ClassicGroup, member: Member, join: Join, effects: Effects, now_ms: int, why: str) -> None:
        if member.join_token is not None:
            # The client gave up its previous request; a client that still waits for it must not believe that it has joined.
            answer = rebalance.join_error(member.join_version, member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
            effects.reply(member.join_token, answer)
            member.join_token = None
        self._update(group, member, join)
        # Parked only after the round has begun: begin() answers members that wait for an assignment, and this may be one.
        rebalance.maybe_begin(group, effects, self._settings, now_ms, f"{member.member_id} {why}")
        self._park(member, join, now_ms)

    @staticmethod
    def _update(group: ClassicGroup, member: Member, join: Join) -> None:
        group.change_protocols(member, join.protocols)
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms
        member.client_id = join.client_id
        member.client_host = join.client_host

    # -- a static member comes back ------------------------------------------------------------------------------------------

    def _come_back(self, group: ClassicGroup, instance_id: str, new_id: str, join: Join, effects: Effects, now_ms: int) -> None:
        """Rejoins a static member under a new id and fences the old id (KAFKA-8500)."""
        member = group.members[group.static[instance_id]]
        former_leader = group.leader
        if member.join_token is not None:
            token, member.join_token = member.join_token, None
            effects.reply(token, rebalance.join_error(member.join_version, member.member_id, ErrorCode.FENCED_INSTANCE_ID))
        if member.sync_token is not None:
            token, member.sync_token = member.sync_token, None
            effects.reply(token, rebalance.sync_error(ErrorCode.FENCED_INSTANCE_ID))
        group.replace_static(instance_id, new_id)
        self._update(group, member, join)
        if group.state is GroupState.STABLE and group.choose_protocol() == group.protocol:
            record = group_record(group)
            if record.size <= self._settings.max_record_bytes:
                effects.records.append(record)
                self._step_in(group, member, join, former_leader, effects, now_ms)
                return
        if group.state is not GroupState.PREPARING_REBALANCE:
            rebalance.begin(group, effects, self._settings, now_ms, f"static member {instance_id} came back")
        self._park(member, join, now_ms)

    def _step_in(
        self, group: ClassicGroup, member: Member, join: Join, former_leader: str | None, effects: Effects, now_ms: int
    ) -> None:
        """Answers without a rebalance; the new id is durable by then (KAFKA-10284). From v9 on the response makes a leader
        skip the assignment; in older versions it names the former id as leader, so that the member does not assign."""
        self._park(member, join, now_ms)
        leads = group.leader == member.member_id
        if leads and join.version >= SKIP_ASSIGNMENT_FROM:
            response = rebalance.join_response(group, member, skip_assignment=True)
        else:
            response = rebalance.join_response(group, member, leader=former_leader)
        rebalance.answer_join(group, member, effects, response, now_ms)
