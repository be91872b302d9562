"""The coordinators of a node: built from its settings, driven by its loop, following the cluster's image."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tidelog.config.resolve import BrokerConfig
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.shards import Shards
from tidelog.metadata.delta import ClusterDelta
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.model.ports import Rng
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.runtime import Alarm, LoopRuntime


class LoopWorld:
    """What shards ask of the node: time, threads, tasks, and one alarm for each callback."""

    def __init__(self, runtime: LoopRuntime) -> None:
        self._runtime = runtime
        self._alarms: dict[Callable[[], None], Alarm] = {}
        self._told_ms = 0
        self._told_at_ms = 0

    def now_ms(self) -> int:
        """The wall clock, but never set back: sessions and rebalances that end in three seconds must not end in an hour."""
        steady_ms = self._runtime.steady_ms()
        self._told_ms = max(self._runtime.now_ms(), self._told_ms + steady_ms - self._told_at_ms)
        self._told_at_ms = steady_ms
        return self._told_ms

    def run_blocking(self, job: Callable[[], Any]) -> Awaitable[Any]:
        return self._runtime.run_blocking(job)

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> object:
        return self._runtime.spawn(coroutine, name)

    def wake_at(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        """Replaces the callback's former alarm."""
        former = self._alarms.pop(callback, None)
        if former is not None:
            former.cancel()
        delay_s = max(0, deadline_ms - self.now_ms()) / 1000
        self._alarms[callback] = self._runtime.call_later(delay_s, callback)

    def stop(self) -> None:
        """No alarm rings any more."""
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()


class Coordinators:
    """The group coordinator's shards, and what makes them follow the cluster."""

    def __init__(self, config: BrokerConfig, replicas: ReplicaManager, runtime: LoopRuntime) -> None:
        self._world = LoopWorld(runtime)
        settings = group_settings(config)
        rng: Rng = runtime.rng

        def make(now_ms: int) -> GroupCoordinator:
            return GroupCoordinator(settings, rng, now_ms)

        self.groups: Shards[GroupCoordinator] = Shards(OFFSETS_TOPIC, replicas, make, self._world)

    def follow(self, delta: ClusterDelta | None = None) -> None:
        """The replica manager has taken an image over. Offsets of topics that are gone go with them."""
        if self.groups.exists or self.groups.running:
            self.groups.follow()
        if delta is not None and delta.topics.deleted:
            names = frozenset(image.name for image in delta.topics.deleted.values())
            self.groups.tell_all(lambda machine: machine.forget_topics(names))

    def stop(self) -> None:
        """Everybody who waits is answered."""
        self._world.stop()
        self.groups.stop()


def group_settings(config: BrokerConfig) -> GroupSettings:
    """What the group machines go by."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
    )
