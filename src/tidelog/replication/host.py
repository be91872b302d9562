"""The interface of the replica manager that a partition uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidelog.model.errors import StorageFailure

if TYPE_CHECKING:
    from tidelog.replication.partition import Partition


class PartitionHost(Protocol):
    """The replica manager, as seen by a partition."""

    lag_max_ms: int
    """replica.lag.time.max.ms."""
    rack_aware: bool
    """Whether consumers are sent to replicas in their own rack (KIP-392)."""

    def even_ms(self) -> int:
        """Current time for the ages of fetches and lags; setting the wall clock does not move it."""
        ...

    def flush(self, partition: Partition) -> None:
        """Flush its log in the background, then call ``finish_flush``."""
        ...

    def storage_failed(self, failure: StorageFailure) -> None:
        """The partition's log dir failed."""
        ...

    def isr_wanted(self, partition: Partition) -> None:
        """Ask the controller for ``leadership.pending``."""
        ...

    def may_join_isr(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the broker is unfenced, not shutting down, and registered with this epoch (-1: unknown)."""
        ...

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered and not fenced."""
        ...

    def is_replaced(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the broker has registered again with a higher epoch."""
        ...

    def rack_of(self, broker_id: int) -> str | None:
        """The rack with which the broker registered."""
        ...
