"""The settings of the group coordinator, typed; defaults are Kafka's."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from tidelog.coordinator.group.consumer.assignors.registry import ASSIGNORS
from tidelog.model.errors import ConfigError


class Bounded(NamedTuple):
    """A broker's value, and the bounds within which a group may set its own."""

    value: int
    least: int
    most: int
    name: str = ""
    """The group's setting."""

    def of(self, own: str | None) -> int:
        """The value for a group that has set ``own``, clamped to the bounds."""
        return self.value if own is None else min(max(int(own), self.least), self.most)


class MigrationPolicy(Enum):
    """Which conversions between the protocols are allowed at run time (``group.consumer.migration.policy``)."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """From classic to consumer."""
        return self in {MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL}

    @property
    def downgrades(self) -> bool:
        """From consumer to classic."""
        return self in {MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL}


_KAFKAS_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def served_assignors(configured: Iterable[str]) -> tuple[str, ...]:
    """The names in ``group.consumer.assignors``; Kafka's own may be given by class name. ConfigError for any other."""
    names = tuple(_KAFKAS_CLASSES.get(name, name) for name in configured)
    unknown = [name for name in names if name not in ASSIGNORS]
    if unknown or not names:
        raise ConfigError(
            f"group.consumer.assignors is {','.join(names)!r}; this node has {', '.join(ASSIGNORS)}, and runs no Java classes"
        )
    return names


class GroupSettings(NamedTuple):
    """Times in ms, sizes in bytes."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    new_member_join_timeout_ms: int = 300_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The assignors of the consumer protocol; the first is the default."""
    consumer_max_size: int = 2_147_483_647
    consumer_session_timeout: Bounded = Bounded(45_000, 45_000, 60_000)
    consumer_heartbeat_interval: Bounded = Bounded(5_000, 5_000, 15_000)
    consumer_assignment_interval: Bounded = Bounded(1_000, 0, 15_000)
    consumer_regex_refresh_interval_ms: int = 600_000
    share_max_size: int = 200
    share_session_timeout: Bounded = Bounded(45_000, 45_000, 60_000, "share.session.timeout.ms")
    share_heartbeat_interval: Bounded = Bounded(5_000, 5_000, 15_000, "share.heartbeat.interval.ms")
    share_assignment_interval: Bounded = Bounded(1_000, 0, 15_000, "share.assignment.interval.ms")
    share_initialize_retry_interval_ms: int = 30_000
    """After this time without an answer the state of a share partition is initialized again."""
    streams_max_size: int = 2_147_483_647
    streams_session_timeout: Bounded = Bounded(45_000, 45_000, 60_000, "streams.session.timeout.ms")
    streams_heartbeat_interval: Bounded = Bounded(5_000, 5_000, 15_000, "streams.heartbeat.interval.ms")
    streams_assignment_interval: Bounded = Bounded(1_000, 0, 15_000, "streams.assignment.interval.ms")
    streams_initial_rebalance_delay: Bounded = Bounded(3_000, 0, 2_147_483_647, "streams.initial.rebalance.delay.ms")
    streams_standby_replicas: Bounded = Bounded(0, 0, 2, "streams.num.standby.replicas")
    max_record_bytes: int = 1_000_000
    """Bytes of key and value: what a batch of the offsets topic can hold, less its header."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    def takes_session_timeout(self, timeout_ms: int) -> bool:
        """Whether a member of the classic protocol may use this session timeout."""
        return self.min_session_timeout_ms <= timeout_ms <= self.max_session_timeout_ms
