"""States of records in a share group, acknowledgement types, and the ranges that are persisted and told. Source: KIP-932."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class RecordState(IntEnum):
    """The state of a record that is in flight. The numbers are those in the records of ``__share_group_state``."""

    AVAILABLE = 0
    ACQUIRED = 1
    """Held by a member until its lock times out. Never persisted: a new leader starts from AVAILABLE."""
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Given up, and not yet in the dead-letter queue of the group (KIP-1191)."""
    ARCHIVED = 4
    """Given up: rejected, delivered too often, or not delivered at all."""

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again."""
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class AckType(IntEnum):
    """What a member says about a record."""

    GAP = 0
    """There is no such record for it, as at a control record: archived."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """It needs more time: its lock begins again."""


STATE_AFTER = {
    AckType.GAP: RecordState.ARCHIVED,
    AckType.ACCEPT: RecordState.ACKNOWLEDGED,
    AckType.RELEASE: RecordState.AVAILABLE,
    AckType.REJECT: RecordState.ARCHIVED,
}
"""The state that an acknowledgement asks for; RENEW leaves the record ACQUIRED."""


class StateBatch(NamedTuple):
    """Offsets ``first`` to ``last`` inclusive in one state, as they are persisted. ``delivery_count``: deliveries so far."""

    first: int
    last: int
    state: RecordState
    delivery_count: int


class InFlightRange(NamedTuple):
    """Offsets ``first`` to ``last`` inclusive that are in flight in one state. ``member`` holds them until ``deadline_ms`` while
    they are ACQUIRED. ``persisting``: the state is not durable yet, and may be undone."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
    member: str | None
    deadline_ms: int
    persisting: bool


class AcquiredRange(NamedTuple):
    """Offsets ``first`` to ``last`` inclusive that a member may process; ``delivery_count`` includes this delivery."""

    first: int
    last: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """What a member says about offsets ``first`` to ``last`` inclusive: one type for all of them, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


class StoredState(NamedTuple):
    """The durable state of a share partition. ``start_offset`` -1: none yet, the group's reset strategy decides.
    ``delivery_complete_count``: records at or above the start that are in a terminal state; -1 when unknown."""

    state_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]
    delivery_complete_count: int = -1
