"""The log dirs of a node from the start to the stop: formatted, opened, their partitions loaded, and closed.

Opening locks the dirs; loading recovers the partitions' logs, which may take minutes after a crash, and the metadata quorum and
heartbeats continue meanwhile.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import NamedTuple

from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ports import FileSystem, Rng
from tidelog.server import component_settings
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.securing import check_stores
from tidelog.storage.checkpoints import META_PROPERTIES
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_dir import LogDir, find_partition_dir
from tidelog.storage.log_jobs import RecoveredJob
from tidelog.storage.log_manager import LogManager

log = logging.getLogger(__name__)

LOAD_THREADS = 4
CLOSE_THREADS = 16
PROGRESS_MS = 5000
"""How often a long recovery logs its progress."""


class ServedImage:
    """The cluster's image that this broker has applied; empty before it serves."""

    def __init__(self) -> None:
        self.image: ClusterImage = EMPTY_IMAGE


class OpenLogs(NamedTuple):
    """Locked log dirs. ``manager`` takes the settings of topics from ``served``."""

    manager: LogManager
    served: ServedImage
    cluster_id: str
    metadata_dir: LogDir
    """The dir with the metadata log; one of ``manager.dirs``."""

    def first_partition(self) -> str | None:
        """The directory of any one partition, in any log dir. StorageFailure when a dir cannot be listed."""
        for log_dir in self.manager.online_dirs():
            try:
                found = log_dir.first_partition()
            except OSError as problem:
                raise StorageFailure(log_dir.path, f"cannot be listed: {problem}") from problem
            if found is not None:
                return found
        return None

    def release(self) -> None:
        """Unlocks the dirs without marking them clean: the start has failed."""
        for log_dir in self.manager.dirs:
            log_dir.release()


def open_logs(config: BrokerConfig, runtime: LoopRuntime, fs: FileSystem) -> OpenLogs:
    """Locks the log dirs, formatted first where a new cluster of one node begins. ConfigError or StorageFailure; then nothing
    stays locked."""
    paths = component_settings.log_dirs(config)
    if config.embedded and not any(fs.exists(f"{path}/{META_PROPERTIES}") for path in paths):
        format_new(config, fs, paths, rng=runtime.rng, now_ms=runtime.now_ms())
    served = ServedImage()

    def config_for(topic: str) -> LogConfig:
        return component_settings.log_config(config.topic_config(served.image.topic_configs(topic)))

    manager = LogManager(
        fs,
        paths,
        node_id=config.node_id,
        rng=runtime.rng,
        config_for=config_for,
        producer_expiration_ms=config.producer_id_expiration_ms,
    )
    try:
        manager.open_dirs()
        assert manager.cluster_id is not None
        return OpenLogs(manager, served, manager.cluster_id, _metadata_dir(config, manager))
    except BaseException:
        for log_dir in manager.dirs:
            log_dir.release()
        raise


def format_new(config: BrokerConfig, fs: FileSystem, dirs: tuple[str, ...], *, rng: Rng, now_ms: int) -> None:
    """Formats a new cluster of one controller; only for settings without ``process.roles``. Other nodes are formatted by their
    operator, so that a mistyped path does not start a second cluster. Blocks. ConfigError for a dir that holds partitions;
    StorageFailure."""
    from tidelog.raft.format import FormatRequest, format_dirs  # Only the first start needs it.

    check_stores(config)
    request = FormatRequest(dirs, config.node_id, metadata_log_dir=config.metadata_log_dir or "")
    try:
        for path in dirs:
            if (found := find_partition_dir(fs, path)) is not None:
                raise ConfigError(
                    f"log.dirs: {path} has no {META_PROPERTIES}, but holds {found}: a new cluster would lose it. "
                    f"Restore {META_PROPERTIES}, or move the directory away."
                )
        result = format_dirs(fs, request, rng=rng, now_ms=now_ms)
    except OSError as problem:
        raise StorageFailure(dirs[0], f"cannot be formatted: {problem}") from problem
    log.info("formatted %s for a new cluster, %s", ", ".join(dirs), result.cluster_id)


def _metadata_dir(config: BrokerConfig, manager: LogManager) -> LogDir:
    wanted = (config.metadata_log_dir or manager.dirs[0].path).rstrip("/") or "/"
    found = next((each for each in manager.dirs if each.path == wanted), None)
    if found is None:
        raise ConfigError(f"metadata.log.dir is {wanted}, which is not among log.dirs. Name one of them.")
    if found.failure is not None:
        raise found.failure
    return found


async def load_logs(logs: OpenLogs, config: BrokerConfig, runtime: LoopRuntime) -> None:
    """Loads the logs of all partitions, several in parallel. StorageFailure when that takes the metadata log's dir or all dirs
    offline; other dirs fail alone."""
    manager = logs.manager
    jobs = manager.load_jobs()
    if jobs:
        even_ms = runtime.even_ms()
        started = reported = runtime.real_ms()

        def report(done: int) -> None:
            nonlocal reported
            now = runtime.real_ms()
            if now - reported >= PROGRESS_MS:
                reported = now
                log.info("loading logs: %d of %d partitions, %.0f s", done, len(jobs), (now - started) / 1000)

        threads = min(LOAD_THREADS, max(1, config.num_recovery_threads_per_data_dir) * len(manager.dirs))
        await runtime.run_long(lambda: runtime.in_parallel([partial(j.run, even_ms) for j in jobs], threads, "load", report))
        for job in jobs:
            manager.loaded(job)
    for note in [RecoveredJob(log_dir) for log_dir in manager.online_dirs()]:
        await runtime.run_blocking(note.run)
        if note.error is not None:
            manager.fail_dir(note.log_dir.path, f"boot id: {note.error}")
    for log_dir in manager.dirs:
        if log_dir.failure is not None and (log_dir is logs.metadata_dir or not manager.online_dirs()):
            raise log_dir.failure


async def close_logs(manager: LogManager, runtime: LoopRuntime, broker_epoch: int) -> None:
    """Flushes and closes all logs and marks the dirs clean. Many concurrent syncs cost a file system little more than one."""

    def close() -> None:
        jobs = manager.closing_jobs()
        runtime.in_parallel([job.run for _, job in jobs], CLOSE_THREADS, "close")
        manager.finish_closing(jobs, broker_epoch)

    await runtime.run_blocking(close)
