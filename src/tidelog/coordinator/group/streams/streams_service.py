"""Requests about streams groups: heartbeats and descriptions."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.streams import streams_heartbeat, streams_leaving
from tidelog.coordinator.group.streams.streams_answer import Answered, shortened
from tidelog.coordinator.group.streams.streams_describing import describe_streams_group
from tidelog.coordinator.group.streams.streams_group import LEAVE_EPOCH
from tidelog.coordinator.group.streams.streams_heartbeat import StreamsBeat
from tidelog.model.errors import KafkaError
from tidelog.model.machine import Outcome
from tidelog.protocol.messages.streams_group_describe import DescribedGroup
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse


class StreamsService:
    """The streams groups of one coordinator."""

    __slots__ = ("_c", "_schedule")

    def __init__(self, coordination: Coordination, schedule: Callable[[str], None]) -> None:
        """``schedule(group_id)``: the group's deadlines may have changed."""
        self._c = coordination
        self._schedule = schedule

    def heartbeat(self, beat: StreamsBeat, now_ms: int) -> Outcome:
        """StreamsGroupHeartbeat; ``streams_validation.check_request`` has checked it. The reply is an ``Answered``."""
        effects = Effects()
        try:
            if beat.request.member_epoch == LEAVE_EPOCH:
                streams_leaving.leave(self._c, beat, effects)
            else:
                streams_heartbeat.heartbeat(self._c, beat, effects, now_ms)
        except KafkaError as refused:
            effects = Effects()
            response = StreamsGroupHeartbeatResponse(error_code=refused.code, error_message=shortened(refused.detail))
            effects.reply(beat.token, Answered(response, {}))
        self._schedule(beat.request.group_id)
        return effects.outcome()

    def describe(self, group_id: str) -> DescribedGroup:
        """StreamsGroupDescribe, one group."""
        return describe_streams_group(self._c, group_id)
