"""PartitionView: a ``Partition`` as the rules of replication read it. They return plans, which the partition applies."""

from __future__ import annotations

from typing import Protocol

from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.replication.leadership import Leadership
from tidelog.replication.registered_brokers import RegisteredBrokers
from tidelog.storage.unified_log import UnifiedLog


class HostView(Protocol):
    """What the rules ask of the broker that hosts the partition."""

    @property
    def lag_max_ms(self) -> int:
        """replica.lag.time.max.ms."""

    @property
    def rack_aware(self) -> bool:
        """Whether consumers are sent to replicas in their own rack (KIP-392)."""

    @property
    def brokers(self) -> RegisteredBrokers: ...
    def storage_failed(self, failure: StorageFailure) -> None:
        """The partition's log dir failed."""


class PartitionView(Protocol):
    """Read-only."""

    @property
    def topic_id(self) -> Uuid: ...
    @property
    def index(self) -> int: ...
    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def broker_id(self) -> int: ...
    @property
    def host(self) -> HostView: ...
    @property
    def log(self) -> UnifiedLog | None:
        """None while the log dir is offline."""

    @property
    def deleted(self) -> bool: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def leader_epoch_start_offset(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def spare_in_sync(self) -> int:
        """In-sync replicas beyond min.insync.replicas; negative: there are too few."""

    @property
    def leadership(self) -> Leadership | None: ...
    @property
    def flush_needed_to(self) -> int: ...
    def check_leader(self, leader_epoch: int, *, any_replica: bool = False) -> ErrorCode: ...
    def is_safe(self, last_offset: int, acks: int) -> bool: ...
