"""Logs committed changes of brokers, topics, leaders and ISRs.

Brokers and topics are logged immediately, changes of partitions half a second later, summed up. Changes that a previous process
of this node had read are not logged, nor are those committed more than a minute ago.
"""

from __future__ import annotations

import logging

from tidelog.controller.quorum_member import QuorumMember
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.state_change_log import PartitionNews, broker_lines, topic_lines
from tidelog.server.runtime import Alarm, LoopRuntime

log = logging.getLogger(__name__)

SUM_UP_S = 0.5
"""How long changes of partitions are collected before they are logged."""
HISTORY_MS = 60_000
"""Older changes are not logged: a node that was away is catching up on them."""


class MetadataNews:
    """``committed`` is a listener of the committed image."""

    def __init__(self, member: QuorumMember, runtime: LoopRuntime, node_id: int) -> None:
        """``node_id``: of this node."""
        self._node_id = node_id
        self._stops = False
        """Whether this node stops in order: then it is no news that partitions which only it has lose their leader."""
        self._member = member
        self._runtime = runtime
        self._old_until = member.log.end_offset - 1
        """The last offset that a previous process of this node had read; a change that begins below it is history."""
        self.partitions = PartitionNews()
        self._timer: Alarm | None = None

    def committed(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        """Logs one change of the committed metadata. A snapshot (no ``delta``) does not say what happened."""
        if delta is None or old.offset < self._old_until or self._runtime.now_ms() - new.timestamp_ms > HISTORY_MS:
            return
        if delta.registrations.brokers.touched:
            for line in broker_lines(old, new, delta, self._why_fenced):
                log.info("%s", line)
        if not delta.topics.changed and not delta.topics.deleted:
            return
        for line in topic_lines(old, delta):
            log.info("%s", line)
        self.partitions.add(old, delta)
        own = new.brokers.get(self._node_id)
        self._stops = own is not None and own.in_controlled_shutdown
        if self.partitions and self._timer is None:
            self._timer = self._runtime.call_later(SUM_UP_S, self._sum_up)

    def stop(self) -> None:
        """Logs what was collected."""
        if self._timer is not None:
            self._timer.cancel()
            self._sum_up()

    def _sum_up(self) -> None:
        self._timer = None
        lines, warnings = self.partitions.take()
        for line in lines:
            log.info("%s", line)
        for line in warnings:
            log.log(logging.INFO if self._stops else logging.WARNING, "%s", line)

    def _why_fenced(self, broker_id: int) -> str | None:
        controller = self._member.controller
        return None if controller is None else controller.heartbeats.why_ended(broker_id)
