"""One log dir: its identity, its lock, its checkpoints, and whether it is online.

This module decides when a directory may be used (formatted for this node and cluster, not locked by another process), and the
order of writes at a clean stop: logs, checkpoints, and last ``.kafka_cleanshutdown``, which the next start removes before it
writes anything.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from typing import NamedTuple

from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import METADATA_TOPIC, TopicPartition, parse_partition_dir, random_uuid, uuid_to_text
from tidelog.model.ports import FileSystem, Lock, Rng
from tidelog.storage import checkpoints
from tidelog.storage.checkpoints import BadCheckpoint, MetaProperties
from tidelog.storage.flushed_marks import CUT, FLUSHED_CHECKPOINT, CutMark, FlushedMark, encode_flushed, read_flushed_marks
from tidelog.storage.reboot_detection import kernel_survived, note_kernel
from tidelog.storage.unified_log import UnifiedLog

DELETE_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
STRAY_SUFFIX = "-stray"
_LONGEST_NAME = 255

_logger = logging.getLogger(__name__)


def find_partition_dir(fs: FileSystem, path: str) -> str | None:
    """The first partition directory in ``path``, other than the metadata log's. None also without ``path``."""
    if not fs.exists(path):
        return None
    for name in fs.listdir(path):
        partition = parse_partition_dir(name)
        if partition is not None and partition.topic != METADATA_TOPIC and fs.stat(f"{path}/{name}").is_dir:
            return f"{path}/{name}"
    return None


class Checkpoints(NamedTuple):
    """What is to stand in the offset checkpoints of a log dir. ``number``: a later set has a higher one."""

    number: int
    recovery_points: dict[TopicPartition, int]
    log_start_offsets: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    flushed: dict[TopicPartition, FlushedMark]


class LogDir:
    """A directory of ``log.dirs`` and the logs in it."""

    __slots__ = (
        "_cuts",
        "_latest",
        "_made",
        "_newest",
        "checkpoint_under_way",
        "clean",
        "failure",
        "flushed",
        "fs",
        "high_watermarks",
        "kernel_noted",
        "kernel_survived",
        "lock",
        "log_start_offsets",
        "logs",
        "meta",
        "number",
        "path",
        "previous_broker_epoch",
        "recovery_points",
    )

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.fs = fs
        self.path = path
        self.meta: MetaProperties | None = None
        self.lock: Lock | None = None
        self.failure: StorageFailure | None = None
        """Why it is offline; set once."""
        self.checkpoint_under_way = False
        """Checkpoints are being written in the background: a second writer would remove the first one's new files."""
        self.clean = False
        """Whether it was closed cleanly."""
        self.kernel_survived = False
        """Whether the machine has not rebooted since the last writes."""
        self.kernel_noted = False
        self.previous_broker_epoch = -1
        """From the marker of a clean shutdown; -1 when there was none."""
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        self._cuts: dict[TopicPartition, int] = {}
        """Partitions with a file of a cut, and its number."""
        self._made = 0
        self._newest = Checkpoints(0, {}, {}, {}, {})
        self._latest = self._newest
        # What the files say; never changed in place, because a thread replaces them.
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.flushed: dict[TopicPartition, FlushedMark] = {}
        self.number = 0
        """Of the checkpoint that the files are of."""

    @property
    def directory_id(self) -> bytes:
        """From meta.properties; only for a dir that was opened."""
        assert self.meta is not None and self.meta.directory_id is not None
        return self.meta.directory_id

    @property
    def online(self) -> bool:
        """Whether it was opened and has not failed."""
        return self.failure is None and self.meta is not None

    def fail(self, failure: StorageFailure) -> None:
        """Takes it offline permanently."""
        if self.failure is None:
            self.failure = failure
            _logger.error("%s; it is offline until the node is restarted", failure)

    def open(self) -> None:
        """Locks it and reads meta.properties. OSError when the disk fails; ConfigError when another process holds the lock."""
        self.fs.make_dirs(self.path)
        try:
            self.lock = self.fs.lock(f"{self.path}/{checkpoints.LOCK}")
        except BlockingIOError as problem:
            raise ConfigError(
                f"log.dirs: {self.path} is in use by another process, which holds its .lock: stop it or name another directory"
            ) from problem
        try:
            self.meta = checkpoints.read_meta_properties(self.fs, self.path)
        except BadCheckpoint as problem:
            raise ConfigError(f"log.dirs: {problem}") from problem

    def adopt(self, cluster_id: str, node_id: int, rng: Rng) -> None:
        """Formats a dir that was added to a formatted node, or adds a missing directory id.

        ConfigError for a dir with partitions: under a new id the metadata would not find them.
        """
        if self.meta is None and (found := self.first_partition()) is not None:
            raise ConfigError(
                f"log.dirs: {self.path} has no {checkpoints.META_PROPERTIES}, but holds {found}. "
                f"Restore {checkpoints.META_PROPERTIES}, or move the directory away."
            )
        if self.meta is None or self.meta.directory_id is None:
            self.meta = MetaProperties(cluster_id, node_id, random_uuid(rng))
            checkpoints.replace_file(self.fs, f"{self.path}/{checkpoints.META_PROPERTIES}", self.meta.encode())

    def read_state(self) -> None:
        """Removes the clean shutdown marker and reads the checkpoints. OSError when the disk fails."""
        epoch = checkpoints.read_clean_shutdown(self.fs, self.path)
        self.clean = epoch is not None
        self.previous_broker_epoch = -1 if epoch is None else epoch
        if self.clean:
            self.fs.remove(f"{self.path}/{checkpoints.CLEAN_SHUTDOWN}")
            self.fs.sync_dir(self.path)
        self.kernel_survived = kernel_survived(self.fs, self.path)
        self.recovery_points = self._offsets(checkpoints.RECOVERY_POINTS)
        self.log_start_offsets = self._offsets(checkpoints.LOG_START_OFFSETS)
        self.high_watermarks = self._offsets(checkpoints.HIGH_WATERMARKS)
        self.number, self.flushed = read_flushed_marks(self.fs, self.path)
        self._made = self.number

    def _offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.read_offsets(self.fs, f"{self.path}/{name}")
        except BadCheckpoint as problem:
            # Without checkpoints logs are scanned from their start, and high watermarks start at the log start.
            _logger.warning("%s; going on without it", problem)
            return {}

    def checkpointed(self, partition: TopicPartition) -> tuple[int, int, int]:
        """Recovery point, log start and high watermark at the last stop; 0 where none was stored."""
        found = (self.recovery_points, self.log_start_offsets, self.high_watermarks)
        return found[0].get(partition, 0), found[1].get(partition, 0), found[2].get(partition, 0)

    def unfinished_copies(self) -> list[str]:
        """Names of directories of unfinished copies into this dir, from before the node stopped."""
        return [name for name in self.fs.listdir(self.path) if name.endswith(FUTURE_SUFFIX)]

    def first_partition(self) -> str | None:
        """The path of a directory of some partition, None when there is none. OSError when the dir cannot be listed."""
        return find_partition_dir(self.fs, self.path)

    def scan(self) -> tuple[list[TopicPartition], list[str]]:
        """(partitions that have a directory here, paths of deleted ones that still have to be removed)."""
        partitions: list[TopicPartition] = []
        removals: list[str] = []
        for name in self.fs.listdir(self.path):
            path = f"{self.path}/{name}"
            if name.endswith(DELETE_SUFFIX) and self.fs.stat(path).is_dir:
                removals.append(path)
                continue
            if name.endswith((FUTURE_SUFFIX, STRAY_SUFFIX)):
                _logger.warning("%s is left as it is: tidelog does not load %s directories", path, name.rpartition("-")[2])
                continue
            partition = parse_partition_dir(name)
            if partition is not None and partition.topic != METADATA_TOPIC and self.fs.stat(path).is_dir:
                partitions.append(partition)
        return partitions, removals

    def note_recovered(self) -> None:
        """Stores the boot id: the logs in the dir are recovered, none was appended to. Blocks; OSError when the disk fails."""
        note_kernel(self.fs, self.path)
        self.kernel_noted = True

    def checkpoint_contents(self, *, closed: bool = False) -> Checkpoints:
        """The three checkpoints as things stand; ``closed`` when the logs were closed in good order. On the loop."""
        logs = self.logs
        self._made += 1
        recovery = {partition: log.recovery_point if closed else log.files.recovery_checkpoint for partition, log in logs.items()}
        self._latest = Checkpoints(
            self._made,
            recovery,
            {
                partition: log.log_start_offset
                for partition, log in logs.items()
                if log.log_start_offset > log.segments[0].base_offset
            },
            {partition: log.high_watermark for partition, log in logs.items()},
            {partition: FlushedMark(log.topic_id, recovery[partition], log.recovery_point) for partition, log in logs.items()},
        )
        return self._latest

    def write_checkpoints(self, contents: Checkpoints) -> None:
        """Replaces the files. Blocks; OSError when the disk fails. On the loop, or while no other thread writes them; only
        after the logs are recovered."""
        self._newest = contents
        self._write(contents, ".now.tmp")

    def write_last_checkpoints(self) -> None:
        """The checkpoints of a clean stop, after which no cut counts. Blocks; OSError when the disk fails."""
        contents = self.checkpoint_contents(closed=True)
        self.write_checkpoints(contents)
        self.remove_old_cuts(contents.number)

    def write_in_background(self, contents: Checkpoints) -> None:
        """``write_checkpoints`` in a thread. Contents that the loop wrote meanwhile are later ones, and stay."""
        if contents.number > self._newest.number:
            self._write(contents, ".tmp")
            if self._newest.number > contents.number:
                self._write(self._newest, ".tmp")

    def _write(self, contents: Checkpoints, suffix: str) -> None:
        if not self.kernel_noted:
            self.note_recovered()
        for name, offsets in (
            (checkpoints.RECOVERY_POINTS, contents.recovery_points),
            (checkpoints.LOG_START_OFFSETS, contents.log_start_offsets),
            (checkpoints.HIGH_WATERMARKS, contents.high_watermarks),
        ):
            path = f"{self.path}/{name}"
            checkpoints.replace_file(self.fs, path, checkpoints.encode_offsets(offsets), temporary=path + suffix)
        path = f"{self.path}/{FLUSHED_CHECKPOINT}"
        checkpoints.replace_file(self.fs, path, encode_flushed(contents.number, contents.flushed), temporary=path + suffix)
        self.recovery_points, self.log_start_offsets = contents.recovery_points, contents.log_start_offsets
        self.flushed = contents.flushed

    def cut_mark(self, partition: TopicPartition, log: UnifiedLog) -> CutMark | None:
        """What has to be noted in the partition's directory before records follow a cut, or go into a new place: a checkpoint of
        what was there before would be taken for theirs, and a torn tail for rot. None when no checkpoint says too much."""
        latest = self._latest  # a thread may be about to write it
        points = max(each.get(partition, 0) for each in (self.recovery_points, latest.recovery_points))
        starts = max(each.get(partition, 0) for each in (self.log_start_offsets, latest.log_start_offsets))
        marks = max(each[partition].flushed if partition in each else 0 for each in (self.flushed, latest.flushed))
        if points <= log.files.recovery_checkpoint and starts <= log.log_start_offset and marks <= log.recovery_point:
            return None
        self._cuts[partition] = self._made
        return CutMark(self._made, log.recovery_point, log.log_start_offset)

    def found_cut(self, partition: TopicPartition, cut: CutMark | None) -> None:
        """What a start found: later checkpoints get higher numbers, also if the file with the last number is damaged."""
        if cut is not None:
            self._made = max(self._made, cut.number)
            self._cuts[partition] = cut.number

    def remove_old_cuts(self, written: int, most: int | None = None) -> None:
        """Removes the files of (at most ``most``) cuts that are older than a checkpoint that is written. On the loop; OSError
        when the disk fails. A file that a thread writes late may come back: its number says that it is old."""
        for partition in [each for each, number in self._cuts.items() if number < written][:most]:
            del self._cuts[partition]
            log = self.logs.get(partition)
            if log is not None:
                with contextlib.suppress(FileNotFoundError):
                    self.fs.remove(f"{log.dir}/{CUT}")

    def mark_clean(self, broker_epoch: int) -> None:
        """The last write of a clean stop."""
        checkpoints.replace_file(
            self.fs, f"{self.path}/{checkpoints.CLEAN_SHUTDOWN}", checkpoints.encode_clean_shutdown(broker_epoch)
        )

    def release(self) -> None:
        """Releases the lock."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None


def set_aside_name(partition: TopicPartition, rng: Rng, suffix: str) -> str:
    """``<topic>-<n>.<32 hex digits><suffix>``; a topic name too long for the file system is truncated (it is never read back)."""
    tail = f"-{partition.partition}.{rng.getrandbits(128):032x}{suffix}"
    return partition.topic[: _LONGEST_NAME - len(tail)] + tail


def previous_broker_epoch(dirs: Iterable[LogDir]) -> int:
    """The broker epoch of the last clean stop; -1 unless all log dirs have the same one."""
    epochs = {each.previous_broker_epoch if each.online else -1 for each in dirs}
    return epochs.pop() if len(epochs) == 1 else -1


def check_same_owner(dirs: list[LogDir], node_id: int, cluster_id: str | None) -> str:
    """Checks that all opened dirs belong to this node and one cluster, and that none is listed twice; returns the cluster id.
    ConfigError otherwise."""
    formatted = [(log_dir, log_dir.meta) for log_dir in dirs if log_dir.failure is None and log_dir.meta is not None]
    if not formatted:
        names = ", ".join(log_dir.path for log_dir in dirs)
        raise ConfigError(f"log.dirs: none of {names} is formatted: run `tidelog format` first")
    expected = formatted[0][1].cluster_id if cluster_id is None else cluster_id
    seen: dict[bytes, str] = {}
    for log_dir, meta in formatted:
        if meta.cluster_id != expected:
            raise ConfigError(f"log.dirs: {log_dir.path} belongs to cluster {meta.cluster_id}, not to {expected}")
        if meta.node_id != node_id:
            raise ConfigError(f"log.dirs: {log_dir.path} belongs to node {meta.node_id}; node.id is {node_id}")
        if meta.directory_id is not None:
            twin = seen.setdefault(meta.directory_id, log_dir.path)
            if twin != log_dir.path:
                raise ConfigError(
                    f"log.dirs: {twin} and {log_dir.path} have the same directory.id {uuid_to_text(meta.directory_id)}: "
                    "one is a copy of the other; remove it from log.dirs"
                )
    return expected
