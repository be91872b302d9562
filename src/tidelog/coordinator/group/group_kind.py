"""GroupKind: the interface of a group protocol, with everything that is asked of a group whatever its protocol.

Another protocol (KIP-932 share groups, KIP-1071 streams groups) is one more class that implements this, and one more row in
``kinds``. What only one protocol has (ConsumerGroupHeartbeat, the phases of a rebalance) is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.offsets.committed_offsets import OffsetsView, Topic
from tidelog.coordinator.group.records import GroupRecord
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberResponse
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class Group(Protocol):
    """What all groups have, whatever the protocol."""

    @property
    def group_id(self) -> str: ...
    @property
    def members(self) -> Mapping[str, Any]: ...
    def check(self) -> None:
        """Asserts the invariants."""


G_contra = TypeVar("G_contra", contravariant=True)


class GroupKind(Protocol[G_contra]):
    """The rules of one protocol. ``G_contra`` is the class of its groups. Effects are added to ``effects``; times in ms."""

    @property
    def name(self) -> str:
        """The type of group that ListGroups shows."""

    def protocol_type(self, group: G_contra) -> str:
        """The protocol type that ListGroups shows."""

    def state_name(self, group: G_contra) -> str:
        """The state that Kafka's tools show."""

    # members, by the requests of the classic protocol

    def join(self, group: G_contra, join: Join, effects: Effects, now_ms: int) -> None:
        """JoinGroup, answered or parked."""

    def sync(self, group: G_contra, token: Token, request: SyncGroupRequest, effects: Effects, now_ms: int) -> None:
        """SyncGroup, answered or parked."""

    def heartbeat(self, group: G_contra, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        """Heartbeat: returns the response."""

    def leave(self, group: G_contra, request: LeaveGroupRequest, effects: Effects, now_ms: int) -> list[MemberResponse]:
        """LeaveGroup: returns a response for each member named."""

    def remove(self, group: G_contra, member_id: str, effects: Effects, now_ms: int) -> None:
        """Removes a member as if its session had expired."""

    # time and the world

    def next_deadline(self, group: G_contra) -> int | None:
        """When ``expire`` may have something to do; None for never."""

    def expire(self, group: G_contra, effects: Effects, now_ms: int) -> None:
        """Ends sessions and phases that are due."""

    def loaded(self, group: G_contra, now_ms: int) -> None:
        """The log has been read to its end: every member gets a full session."""

    def topics_changed(self, group: G_contra) -> None:
        """Called when topics changed."""

    # offsets

    def commit_error(self, group: G_contra, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | None:
        """The error that refuses an OffsetCommit as a whole."""

    def transactional_commit_error(self, group: G_contra, request: TxnOffsetCommitRequest) -> ErrorCode | None:
        """The error that refuses a TxnOffsetCommit as a whole."""

    def fetch_error(self, group: G_contra, member_id: str | None, epoch: int) -> ErrorCode | None:
        """The error that refuses OffsetFetch to this member."""

    def delete_offsets_error(self, group: G_contra) -> ErrorCode | None:
        """The error that refuses an OffsetDelete as a whole."""

    def reads(self, group: G_contra, topic: str) -> bool:
        """Whether a member may read the topic; then its offsets do not expire."""

    def expired_offsets(self, group: G_contra, offsets: OffsetsView, now_ms: int) -> list[Topic]:
        """Expired commits."""

    # the end of a group

    def may_be_deleted(self, group: G_contra) -> bool:
        """Whether DeleteGroups may delete it."""

    def is_idle(self, group: G_contra) -> bool:
        """Whether it may be deleted together with its last offset."""

    def tombstones(self, group: G_contra) -> list[GroupRecord]:
        """The records that delete the group."""
