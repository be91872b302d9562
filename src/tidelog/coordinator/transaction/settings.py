"""Typed settings of the transaction coordinator, with Kafka's defaults."""

from __future__ import annotations

from typing import NamedTuple

NEVER_MS = 1 << 62
"""A time that is not reached."""


class TransactionSettings(NamedTuple):
    """Times in ms."""

    max_timeout_ms: int = 900_000
    """The longest transaction that a producer may ask for (transaction.max.timeout.ms)."""
    abort_check_interval_ms: int = 10_000
    """How often open transactions are checked (transaction.abort.timed.out.transaction.cleanup.interval.ms)."""
    id_expiration_ms: int = 7 * 24 * 3_600_000
    """An unused transactional id expires after this (transactional.id.expiration.ms)."""
    id_expiration_check_interval_ms: int = 3_600_000
    """How often expired ids are removed (transaction.remove.expired.transaction.cleanup.interval.ms)."""
    max_record_bytes: int = 1_048_588
    """The largest record of a transaction (message.max.bytes); partitions that do not fit cannot join."""
