"""LogDirs: the log dirs of one broker: which of them can be used, and which one takes a new partition.

A dir that cannot be opened is offline, the others are used. What a failing dir means for the logs in it is the log manager's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.model.errors import StorageFailure
from tidelog.model.ids import RESERVED_UUIDS
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.log_dir import DELETE_SUFFIX, FUTURE_SUFFIX, LogDir, check_same_owner


class LogDirs:
    """The dirs in the order of ``log.dirs``."""

    def __init__(self, fs: FileSystem, paths: Sequence[str]) -> None:
        self._fs = fs
        self.all = [LogDir(fs, path.rstrip("/") or "/") for path in paths]

    def open(self, node_id: int, cluster_id: str | None, rng: Rng) -> str:
        """Locks the dirs, checks their identity and reads their state; returns the cluster id. A dir that fails is offline;
        StorageFailure when none is left, ConfigError when one is in use, not formatted, or belongs to another node."""
        for log_dir in self.all:
            try:
                log_dir.open()
            except OSError as problem:
                log_dir.fail(StorageFailure(log_dir.path, f"cannot be opened: {problem}"))
        self._assert_one_online()
        cluster_id = check_same_owner(self.all, node_id, cluster_id)
        for log_dir in self.all:
            if log_dir.failure is None:
                try:
                    log_dir.adopt(cluster_id, node_id, rng)
                    log_dir.read_state()
                except OSError as problem:
                    log_dir.fail(StorageFailure(log_dir.path, f"cannot be opened: {problem}"))
        self._assert_one_online()
        return cluster_id

    def _assert_one_online(self) -> None:
        if all(log_dir.failure is not None for log_dir in self.all):
            failure = self.all[0].failure
            assert failure is not None
            raise failure

    def online(self) -> list[LogDir]:
        """Dirs that were opened and have not failed."""
        return [log_dir for log_dir in self.all if log_dir.online]

    def at(self, path: str) -> LogDir:
        """The dir with this path; ValueError when there is none."""
        for log_dir in self.all:
            if log_dir.path == path:
                return log_dir
        raise ValueError(f"{path} is none of the log dirs")

    def choose(self, directory_id: bytes | None) -> LogDir:
        """The dir for a new partition: the one with this id, else the one with the fewest logs. StorageFailure when none is
        online, or when the partition may lie in one that is not."""
        online = self.online()
        if not online:
            raise StorageFailure(self.all[0].path, "no log dir is online")
        for log_dir in online:
            if log_dir.directory_id == directory_id:
                return log_dir
        offline = [log_dir for log_dir in self.all if not log_dir.online]
        if offline and directory_id is not None and directory_id not in RESERVED_UUIDS:
            # An empty log in another dir would look as if all data had been lost.
            raise StorageFailure(offline[0].path, "a partition may lie in this dir, which is offline: no other one is begun")
        return min(online, key=lambda log_dir: len(log_dir.logs))

    def discard_unfinished_copies(self) -> None:
        """Marks unfinished copies for deletion whose partition still exists (they can be restarted); leaves others for the
        operator. Before any log is loaded."""
        for log_dir in self.online():
            try:
                for name in log_dir.unfinished_copies():
                    partition = name.rpartition(".")[0]
                    if any(self._fs.exists(f"{other.path}/{partition}") for other in self.online()):
                        path = f"{log_dir.path}/{name}"
                        self._fs.rename(path, f"{path.removesuffix(FUTURE_SUFFIX)}{DELETE_SUFFIX}")
            except OSError as problem:
                log_dir.fail(StorageFailure(log_dir.path, f"cannot be listed: {problem}"))
