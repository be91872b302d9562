"""The settings of a partition's log: the topic's settings, typed, with Kafka's defaults.

No decisions here: config.resolve turns topic settings into a ``LogConfig``, and the log reads plain attributes. Names are Kafka's
topic settings with underscores instead of dots; the suffix gives milliseconds or bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

NEVER_MS = (1 << 63) - 1
"""Infinite duration; Kafka's Long.MAX_VALUE."""
NEVER_MESSAGES = (1 << 63) - 1
UNLIMITED = -1
"""``retention.ms`` or ``retention.bytes`` without a limit."""

DELETE = "delete"
COMPACT = "compact"


class Origin(IntEnum):
    """The origin of an append; decides how much is checked and whether offsets are assigned or kept."""

    CLIENT = 0
    """A Produce request: everything is checked, offsets are assigned."""
    COORDINATOR = 1
    """A group or transaction coordinator of this broker, control batches included: offsets are assigned."""
    REPLICATION = 2
    """A leader's batches, unchanged: offsets are kept, producer state follows without checks."""
    RAFT = 3
    """The metadata log's leader: offsets are assigned, no producers."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The settings of one log. Defaults are those of Kafka 4.3's topic settings."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 86_400_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 86_400_000
    retention_bytes: int = UNLIMITED
    file_delete_delay_ms: int = 60_000
    cleanup_policy: frozenset[str] = frozenset({DELETE})
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER_MS
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1_048_588
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NEVER_MS
    message_timestamp_after_max_ms: int = 3_600_000
    flush_messages: int = NEVER_MESSAGES
    flush_ms: int = NEVER_MS
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    preallocate: bool = False

    @property
    def compact(self) -> bool:
        """Whether the newest record of each key is kept and the cleaner works on this log."""
        return COMPACT in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether old segments are deleted by age and size."""
        return DELETE in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether the broker's clock stamps the batches."""
        return self.message_timestamp_type == "LogAppendTime"
