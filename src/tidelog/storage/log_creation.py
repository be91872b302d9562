"""Creates a new partition's log: its directory, its id, one empty segment. Existing ones are loaded by ``recovery``."""

from __future__ import annotations

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata
from tidelog.storage.flush_job import Unflushed
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.log_config import LogConfig
from tidelog.storage.producer_state import ProducerStateManager
from tidelog.storage.segment import LogSegment
from tidelog.storage.unified_log import UnifiedLog


def create_log(
    fs: FileSystem,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: bytes | None,
    config: LogConfig,
    now_ms: int,
    *,
    start_offset: int = 0,
    producer_expiration_ms: int = 86_400_000,
    rng: Rng | None = None,
) -> UnifiedLog:
    """Creates a partition: its directory, partition.metadata before any data, one empty segment. Raises OSError.

    Names and partition.metadata are synced by the first flush job, so that thousands of partitions are created quickly.
    """
    fs.make_dirs(directory)
    if topic_id is not None:
        file = fs.open(f"{directory}/{PARTITION_METADATA}", create=True)
        file.write(0, encode_partition_metadata(topic_id))
        file.close()
    segment = LogSegment.create(fs, directory, start_offset, now_ms)
    producers = ProducerStateManager(producer_expiration_ms)
    producers.end_offset = start_offset
    return UnifiedLog(
        fs,
        directory,
        topic_partition,
        topic_id,
        config,
        [segment],
        leader_epochs=LeaderEpochCache(),
        producers=producers,
        log_start_offset=start_offset,
        recovery_point=start_offset,
        unflushed=Unflushed(now_ms, metadata=topic_id is not None, names=True),
        rng=rng,
    )
