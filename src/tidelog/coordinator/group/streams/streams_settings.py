"""The settings of a streams group: its own within the broker's bounds, else the broker's."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.settings import Bounded

ASSIGNMENT_INTERVAL = "group.streams.assignment.interval.ms"
STANDBYS = "num.standby.replicas"
"""As the group's record names it."""


def setting(c: Coordination, group_id: str, bounded: Bounded) -> int:
    """The value for this group."""
    return bounded.of(c.topics.group_configs(group_id).get(bounded.name))


def assignment_interval_ms(c: Coordination, group_id: str) -> int:
    """The minimum time between two targets; the broker's value can be changed at run time."""
    bounded = c.settings.streams_assignment_interval
    dynamic = c.topics.cluster_config(ASSIGNMENT_INTERVAL)
    if dynamic is not None and bounded.name not in c.topics.group_configs(group_id):
        return int(dynamic)
    return setting(c, group_id, bounded)


def assignment_configs(c: Coordination, group_id: str) -> Mapping[str, str]:
    """The settings that a target depends on, as the group's record keeps them: a change raises the group's epoch."""
    return {STANDBYS: str(setting(c, group_id, c.settings.streams_standby_replicas))}
