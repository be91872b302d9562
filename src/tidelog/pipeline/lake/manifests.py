"""Tables of plain Parquet files with a commit log of their own: exactly once without Delta or Iceberg, readable by anything.

Layout below the table's directory::

    _tidelog/00000000000000000007.json            commit 7: files added and removed, the batch, the progress after it
    data/batch=<token>/topic=t/date=2026-01-01/*  the files; commits name them, the folder is not listed

A commit is a JSON object: ``format`` 1, ``version``, ``columns`` and ``partition_by`` (commit 0), ``identity`` (the batch, or
null), ``progress`` (application -> its progress, for this commit's application only), ``adds``, ``removes``. Every
``SNAPSHOT_EVERY`` commits a second file, ``<version>.snapshot.json``, has the sum of all commits so far; if it is lost, it is
rebuilt from them.

Invariants: a version is created once, by the first writer (a hard link, which fails where the name exists); a batch is in one
commit with its files; a file that no commit names is not in the table. A writer that loses the race for a version reads the
new one and decides again: that fences a second driver. Local and mounted disks only: for stores without hard links use Delta or
Iceberg."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from tidelog.pipeline.lake.landed import PartitionKey, Progress, Verdict, judge
from tidelog.pipeline.lake.table import DataFile, Layout
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError
from tidelog.spark.arrow import SQL_TYPES

LOG, DATA = "_tidelog", "data"
FORMAT = 1
SNAPSHOT_EVERY = 64
DATE = "date"


class Superseded(SinkError):
    """Files to be replaced are no longer in the table. Nothing was committed."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A version of a table. ``columns``: name -> Spark's type, without columns that only partition directories have."""

    version: int = -1
    columns: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    files: dict[str, DataFile] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)

    def after(self, commit: dict[str, Any]) -> TableState:
        """With one more commit."""
        gone = set(commit["removes"])
        files = {path: file for path, file in self.files.items() if path not in gone}
        files |= {file.path: file for file in map(DataFile.from_json, commit["adds"])}
        progress = self.progress | {name: Progress.from_json(said) for name, said in commit["progress"].items()}
        columns = commit.get("columns") or self.columns
        partition_by = tuple(commit.get("partition_by") or self.partition_by)
        return TableState(commit["version"], columns, partition_by, files, progress)

    def to_json(self) -> dict[str, Any]:
        """As one commit that stands for all up to this version."""
        return {
            "format": FORMAT,
            "version": self.version,
            "columns": self.columns,
            "partition_by": list(self.partition_by),
            "identity": None,
            "progress": {name: progress.to_json() for name, progress in sorted(self.progress.items())},
            "adds": [self.files[path].to_json() for path in sorted(self.files)],
            "removes": [],
        }


class ManifestTable:
    """A table of plain Parquet files in a directory."""

    def __init__(
        self,
        path: str,
        *,
        partition_by: Sequence[str] = ("topic", DATE),
        target_file_bytes: int = 128 << 20,
        compression: str = "snappy",
    ) -> None:
        self._root = _local(path)
        self._log = self._root / LOG
        self._layout = Layout(
            str(self._root / DATA),
            tuple(partition_by),
            grouped=True,
            target_file_bytes=target_file_bytes,
            compression=compression,
        )
        self._state = TableState()

    @property
    def data(self) -> Path:
        """The directory that paths of files are relative to."""
        return self._root / DATA

    def check(self) -> None:
        """Nothing: pyarrow is all that it needs."""

    def prepare(self, names: Sequence[str]) -> Layout:
        kept = {name: SQL_TYPES[name] for name in names if name not in self._layout.partition_by}
        self.create(kept, self._layout.partition_by)
        return self._layout

    def create(self, columns: dict[str, str], partition_by: Sequence[str]) -> None:
        """Create the table if it does not exist. SinkError if it exists with other partitions."""
        state = self.state()
        if state.version < 0:
            first = {"columns": columns, "partition_by": list(partition_by), "identity": None, "progress": {}}
            self._put(0, {**first, "adds": [], "removes": []})
            state = self.state()
        if state.partition_by != tuple(partition_by):
            raise SinkError(
                f"The table {self._root} is partitioned by {_list(state.partition_by)}, and {_list(partition_by)} is asked for: "
                "say the former, or take another directory."
            )
        missing = sorted(set(columns) - set(state.columns))
        if missing:
            raise SinkError(f"The table {self._root} has the columns {_list(state.columns)}, and not {_list(missing)}.")

    def exists(self) -> bool:
        """Whether there is a table."""
        return self.state().version >= 0

    def state(self) -> TableState:
        """The newest version. SinkError when a commit is missing or cannot be read."""
        versions, snapshots = self._names()
        state = self._state
        if state.version < 0 and snapshots:
            state = TableState().after(self._read(f"{max(snapshots):020}.snapshot.json"))
        newest = max(versions, default=-1)
        if newest < state.version:
            raise SinkError(
                f"The table {self._root} is at version {newest}, and was at {state.version}: it was deleted or replaced."
            )
        for version in range(state.version + 1, newest + 1):
            state = state.after(self._read(f"{version:020}.json"))
        self._state = state
        return state

    def progress(self, application: str, keys: Sequence[PartitionKey] = ()) -> Progress:
        return self.state().progress.get(application, Progress())

    def commit(self, identity: BatchIdentity, files: Sequence[DataFile]) -> bool:
        return self.commit_as(identity, files, lambda _: {})

    def commit_as(
        self, identity: BatchIdentity, files: Sequence[DataFile], columns: Callable[[dict[str, str]], dict[str, str]]
    ) -> bool:
        """Commit with ``columns``, which makes the table's columns from those that it has. It is called again each time that
        another writer was first."""
        while True:
            state = self.state()
            if state.version < 0:
                raise SinkError(f"There is no table in {self._root} any more: it was deleted while it was written to.")
            progress = state.progress.get(identity.application, Progress())
            if judge(progress, identity) is Verdict.LANDED:
                return False
            commit = {
                "columns": columns(state.columns),
                "identity": json.loads(identity.to_json()),
                "progress": {identity.application: progress.after(identity).to_json()},
                "adds": [file.to_json() for file in files],
                "removes": [],
            }
            if self._put(state.version + 1, commit):
                return True

    def replace(self, removes: Iterable[str], adds: Sequence[DataFile]) -> None:
        """Replace files by files with the same rows (a compaction). Superseded when one of the old files is not in the table
        any more.

        After any other error it is unknown whether the commit is there.
        """
        old = sorted(removes)
        while True:
            state = self.state()
            gone = [path for path in old if path not in state.files]
            if gone:
                raise Superseded(
                    f"{gone[0]} is not in the table {self._root} any more: another process has compacted it. Start again."
                )
            commit: dict[str, Any] = {"identity": None, "progress": {}, "adds": [file.to_json() for file in adds], "removes": old}
            if self._put(state.version + 1, commit):
                return

    def replaced(self, before_ms: int) -> list[str]:
        """Files that commits before this time removed from the table, by the times of the commits' files."""
        versions, _ = self._names()
        found: list[str] = []
        for version in sorted(versions):
            name = f"{version:020}.json"
            if (self._log / name).stat().st_mtime_ns // 1_000_000 < before_ms:
                found += self._read(name)["removes"]
        return found

    def paths(self) -> set[str]:
        """Relative to ``data``."""
        versions, _ = self._names()
        kept = set(self.state().files)
        for version in versions:  # Older versions can be read as long as their commits exist.
            kept.update(file["path"] for file in self._read(f"{version:020}.json")["adds"])
        return kept

    def _names(self) -> tuple[list[int], list[int]]:
        versions, snapshots = [], []
        for name in os.listdir(self._log) if self._log.is_dir() else []:
            number, _, rest = name.partition(".")
            if number.isdecimal() and rest == "json":
                versions.append(int(number))
            elif number.isdecimal() and rest == "snapshot.json":
                snapshots.append(int(number))
        return versions, snapshots

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._log / name).read_text())
        except (OSError, ValueError) as error:
            raise SinkError(f"The commit {self._log / name} cannot be read: {error}. Restore it from a copy.") from None
        if found.get("format") != FORMAT:
            raise SinkError(
                f"The commit {self._log / name} has format {found.get('format')}; this tidelog knows {FORMAT}: update it."
            )
        return found

    def _put(self, version: int, commit: dict[str, Any]) -> bool:
        """Create a version. False when another writer was first."""
        self._log.mkdir(parents=True, exist_ok=True)
        whole = {"format": FORMAT, "version": version, **commit}
        if not _create(self._log / f"{version:020}.json", whole):
            return False
        state = self.state()
        if version and version % SNAPSHOT_EVERY == 0:
            _create(self._log / f"{version:020}.snapshot.json", state.to_json())
        return True


def _create(path: Path, content: dict[str, Any]) -> bool:
    """Create a file that is complete and on the disk, or not there at all. False when it exists."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with fresh.open("xb") as file:
            file.write(json.dumps(content, separators=(",", ":")).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        except FileExistsError:
            return False
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        return True
    finally:
        fresh.unlink(missing_ok=True)


def _local(path: str) -> Path:
    parsed = urlparse(path)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    if parsed.scheme and "://" in path:
        raise SinkError(
            f"{path} is not a local path, and a table of plain Parquet needs a disk where a file can be created by one writer "
            "only. "
            "On object stores and HDFS use a Delta or an Iceberg table."
        )
    return Path(path).absolute()


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
