"""The typed settings of one topic: its own overrides, else what the broker says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One field per topic option, dots as underscores; a test holds it equal to ``config.topic_options.TOPIC_OPTIONS``.

    Partitions with equal settings share one object (``BrokerConfig.topic_config``).
    """

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    errors_deadletterqueue_group_enable: bool
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    internal_segment_bytes: int | None
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @property
    def is_compacted(self) -> bool:
        """Whether old values of a key are removed."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether retention by age and size removes segments. The log start moves for DeleteRecords in any case."""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether the broker's clock stamps the records."""
        return self.message_timestamp_type == "LogAppendTime"
