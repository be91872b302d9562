"""The consumer protocol (KIP-848) as a kind of group: what requests of the classic protocol mean in a group that may have
members of both protocols, and the rules for its offsets. Its own heartbeat is in ``consumer_heartbeat``."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_kind import ClassicKind
from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.consumer import consumer_leaving, session_expiry
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.consumer.consumer_records import ConsumerKey, group_tombstones, replay_tombstone, replay_value
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.migration import classic_members
from tidelog.coordinator.group.offsets import consumer_commit_check
from tidelog.coordinator.group.offsets.committed_offsets import OffsetsView, Topic, is_too_long
from tidelog.coordinator.group.offsets.transactional_offsets import names_nobody
from tidelog.coordinator.group.records import GroupRecord
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import ZERO_UUID
from tidelog.model.machine import Token
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberResponse
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class ConsumerKind:
    name = "consumer"

    def __init__(self, coordination: Coordination, classic: ClassicKind) -> None:
        """``classic`` takes over an empty group when its next member speaks the classic protocol."""
        self._c = coordination
        self._classic = classic

    def protocol_type(self, group: ConsumerGroup) -> str:
        return "consumer"

    def state_name(self, group: ConsumerGroup) -> str:
        return group.state.value

    # members

    def join(self, group: ConsumerGroup, join: Join, effects: Effects, now_ms: int) -> None:
        if not group.members:
            self._classic.join(None, join, effects, now_ms, former=tuple(group_tombstones(group)))
            return
        try:
            if not self._c.settings.takes_session_timeout(join.request.session_timeout_ms):
                raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
            classic_members.join(self._c, group, join, effects, now_ms)
        except KafkaError as refused:
            group.metadata_checked = False
            effects.drop_all()
            effects.reply(join.token, rebalance.join_error(join.version, "", refused.code))

    def sync(self, group: ConsumerGroup, token: Token, request: SyncGroupRequest, effects: Effects, now_ms: int) -> None:
        try:
            classic_members.sync(self._c, group, token, request, effects, now_ms)
        except KafkaError as refused:
            effects.reply(token, rebalance.sync_error(refused.code))

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        try:
            return classic_members.heartbeat(group, request, now_ms)
        except KafkaError as refused:
            return refused.code

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int) -> list[MemberResponse]:
        return classic_members.leave(self._c, group, request, effects, now_ms)

    def remove(self, group: ConsumerGroup, member_id: str, effects: Effects, now_ms: int) -> None:
        consumer_leaving.remove(self._c, group, [member_id], effects, now_ms)

    # time and the world

    def next_deadline(self, group: ConsumerGroup) -> int | None:
        return group.timers.soonest_ms

    def expire(self, group: ConsumerGroup, effects: Effects, now_ms: int) -> None:
        session_expiry.expire(self._c, group, effects, now_ms)

    def loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        session_expiry.begin_timers(self._c, group, now_ms)

    def topics_changed(self, group: ConsumerGroup) -> None:
        """Makes the group check its topics with the next heartbeat."""
        group.metadata_checked = False

    # offsets

    def commit_error(self, group: ConsumerGroup, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | None:
        partitions = (
            (topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if not self._too_long(partition.committed_metadata)
        )
        return self._epoch_error(group, request.member_id, request.generation_id_or_member_epoch, version, partitions)

    def transactional_commit_error(self, group: ConsumerGroup, request: TxnOffsetCommitRequest) -> ErrorCode | None:
        if names_nobody(request):
            return None
        partitions = (
            (self._c.topics.id_of(topic.name) or ZERO_UUID, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if not self._too_long(partition.committed_metadata)
        )
        return self._epoch_error(group, request.member_id, request.generation_id_or_member_epoch, None, partitions)

    def _too_long(self, metadata: str | None) -> bool:
        return is_too_long(metadata or "", self._c.settings.offset_metadata_max_bytes)

    @staticmethod
    def _epoch_error(
        group: ConsumerGroup, member_id: str, epoch: int, version: int | None, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode | None:
        return consumer_commit_check.commit_error(group, member_id, epoch, version, partitions)

    def fetch_error(self, group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
        return consumer_commit_check.fetch_error(group, member_id, epoch)

    def delete_offsets_error(self, group: ConsumerGroup) -> ErrorCode | None:
        return None

    def reads(self, group: ConsumerGroup, topic: str) -> bool:
        return topic in group.subscribed_topics()

    def expired_offsets(self, group: ConsumerGroup, offsets: OffsetsView, now_ms: int) -> list[Topic]:
        retention_ms = self._c.settings.offsets_retention_ms
        return consumer_commit_check.expired(group, offsets.of(group.group_id), now_ms, retention_ms)

    # the end of a group

    def may_be_deleted(self, group: ConsumerGroup) -> bool:
        return not group.members

    def is_idle(self, group: ConsumerGroup) -> bool:
        return not group.members

    def tombstones(self, group: ConsumerGroup) -> list[GroupRecord]:
        return group_tombstones(group)

    # the log

    def replay(self, key: ConsumerKey, value: bytes | None, *, loading: bool) -> None:
        """Replays a record of the consumer protocol."""
        group = self._c.consumer(key.group_id)
        if value is not None:
            if self._c.classic(key.group_id) is not None and not loading:
                # The group has just been downgraded: these records belong to that, and the classic group is there already.
                return
            if group is None:
                group = ConsumerGroup(key.group_id)
                self._c.put(group)
            replay_value(group, key, value)
        elif group is not None and replay_tombstone(group, key):
            self._c.drop(key.group_id)
