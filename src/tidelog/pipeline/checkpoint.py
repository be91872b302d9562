"""What Spark's checkpoint of a query says, and what a pipeline adds to it, on any file system that Hadoop supports.

Spark writes ``offsets/N`` before batch N runs and ``commits/N`` after it. It does not record where the first batch begins, so
``<query>.start.json`` has that, with the number from which this checkpoint's batches are counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark.planning import SourceOffset, next_ranges


class Files(Protocol):
    """The file operations that a checkpoint needs."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder; empty if it does not exist."""
        ...

    def read(self, path: str) -> str | None:
        """A file's text; None if it does not exist."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write a whole file atomically."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """Where the first batch of a checkpoint begins, its number, and what the sources said about the start."""

    first_batch: int
    offset: SourceOffset
    said: str = ""


class Checkpoint:
    """One query's checkpoint."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path.rstrip("/")
        self._newest: tuple[int, SourceOffset] | None = None

    def planned(self) -> int:
        """Spark's number of the last batch that was started; -1: none."""
        return self._last("offsets")

    def committed(self) -> int:
        """Spark's number of the last batch that Spark finished; -1: none."""
        return self._last("commits")

    def start(self) -> Start | None:
        """What ``begin`` wrote; None before that."""
        text = self._files.read(self.path + ".start.json")
        if text is None:
            return None
        try:
            found = json.loads(text)
            return Start(int(found["first_batch"]), SourceOffset.from_json(found["offsets"]), str(found.get("said", "")))
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{self.path}.start.json is damaged: restore it, or delete the whole checkpoint to continue from the tables."
            ) from None

    def begin(self, start: Start) -> None:
        """Record where the first batch begins, before it runs."""
        found = {"first_batch": start.first_batch, "offsets": start.offset.to_json(), "said": start.said}
        self._files.write(self.path + ".start.json", json.dumps(found))

    def end_of(self, batch: int) -> SourceOffset | None:
        """Where a batch ends; None if Spark has deleted its entry."""
        text = self._files.read(f"{self.path}/offsets/{batch}")
        if text is None:
            return None
        positions, ids = {}, {}
        # Two lines of version and metadata, then one line for each source, "-" for a source without offsets.
        for line in text.split("\n")[2:]:
            if line.startswith("{"):
                offset = SourceOffset.from_json(json.loads(line))
                positions.update(offset.positions)
                ids.update(offset.ids)
        return SourceOffset(positions, ids)

    def start_of(self, batch: int) -> SourceOffset | None:
        """Where a batch begins."""
        start = self.start()
        return (start.offset if start else None) if batch == 0 else self.end_of(batch - 1)

    def ranges(self, batch: int) -> tuple[OffsetRange, ...]:
        """The ranges of a batch for all partitions. Partitions without new records are included, so that the last batch has
        every position."""
        return ranges_between(*self.span(batch))

    def span(self, batch: int) -> tuple[SourceOffset, SourceOffset]:
        """Where a batch begins and ends. ConfigError if the checkpoint does not have it."""
        known = self._newest is not None and self._newest[0] == batch - 1
        begin = self._newest[1] if known and self._newest is not None else self.start_of(batch)
        end = self.end_of(batch)
        if begin is None or end is None:
            raise ConfigError(f"{self.path} has no offsets of batch {batch}: delete the checkpoint to continue from the tables.")
        self._newest = batch, end
        return begin, end

    def _last(self, folder: str) -> int:
        return max((int(name) for name in self._files.names(f"{self.path}/{folder}") if name.isdecimal()), default=-1)


def ranges_between(begin: SourceOffset, end: SourceOffset) -> tuple[OffsetRange, ...]:
    """The ranges between two positions, empty ones included."""
    moved = {piece.at: piece for piece in next_ranges(begin, end, {})[0]}
    return tuple(
        OffsetRange(at.topic, end.ids.get(at.topic, ""), at.partition, moved[at].start if at in moved else stop, stop)
        for at, stop in sorted(end.positions.items())
    )


class HadoopFiles:
    """Files through Hadoop's classes in Spark's JVM, so that a checkpoint may be wherever Spark can write one."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    def names(self, folder: str) -> list[str]:
        path, system = self._at(folder)
        return [status.getPath().getName() for status in system.listStatus(path)] if system.exists(path) else []

    def read(self, path: str) -> str | None:
        where, system = self._at(path)
        if not system.exists(where):
            return None
        stream = system.open(where)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        fresh, system = self._at(path + ".new")
        stream = system.create(fresh, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        where, _ = self._at(path)
        system.delete(where, False)
        system.rename(fresh, where)

    def _at(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where, where.getFileSystem(self._conf)
