"""What Spark's checkpoint of one query says, and what a pipeline writes beside it, on any file system that Hadoop knows.

Spark writes ``offsets/N`` before batch N runs and ``commits/N`` after it. Where the first batch begins it does not write down, so
``<query>.start.json`` has that, and the number that batches of this checkpoint are counted from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark.planning import SourceOffset, next_ranges


class Files(Protocol):
    """The few things that are done with files."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none when it is not there."""
        ...

    def read(self, path: str) -> str | None:
        """A file's text; None when it is not there."""
        ...

    def write(self, path: str, text: str) -> None:
        """A whole file, at once or not at all."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """Where the first batch of a checkpoint begins, the number of that batch, and what the sources said about the start."""

    first_batch: int
    offset: SourceOffset
    said: str = ""


class Checkpoint:
    """One query's checkpoint."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path.rstrip("/")

    def planned(self) -> int:
        """Spark's number of the last batch that was begun; -1: none."""
        return self._last("offsets")

    def committed(self) -> int:
        """Spark's number of the last batch that Spark finished; -1: none."""
        return self._last("commits")

    def start(self) -> Start | None:
        """What ``begin`` wrote."""
        text = self._files.read(self.path + ".start.json")
        if text is None:
            return None
        try:
            found = json.loads(text)
            return Start(int(found["first_batch"]), SourceOffset.from_json(found["offsets"]), str(found.get("said", "")))
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"{self.path}.start.json is damaged: restore it, or delete the whole checkpoint to go on from the tables."
            ) from None

    def begin(self, start: Start) -> None:
        """Write down where the first batch begins, before it does."""
        found = {"first_batch": start.first_batch, "offsets": start.offset.to_json(), "said": start.said}
        self._files.write(self.path + ".start.json", json.dumps(found))

    def end_of(self, batch: int) -> SourceOffset | None:
        """Where a batch ends; None when Spark has forgotten it."""
        text = self._files.read(f"{self.path}/offsets/{batch}")
        if text is None:
            return None
        positions, ids = {}, {}
        # Two lines of version and metadata; then one for each source, "-" where it has nothing.
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
        """What a batch reads, every partition: those without news too, so that the last batch says it all."""
        begin, end = self.start_of(batch), self.end_of(batch)
        if begin is None or end is None:
            raise ConfigError(f"{self.path} has no offsets of batch {batch}: delete the checkpoint to go on from the tables.")
        return ranges_between(begin, end)

    def _last(self, folder: str) -> int:
        return max((int(name) for name in self._files.names(f"{self.path}/{folder}") if name.isdecimal()), default=-1)


def ranges_between(begin: SourceOffset, end: SourceOffset) -> tuple[OffsetRange, ...]:
    """The offsets between two positions, empty ranges included."""
    moved = {piece.at: piece for piece in next_ranges(begin, end, {})[0]}
    return tuple(
        OffsetRange(at.topic, end.ids.get(at.topic, ""), at.partition, moved[at].start if at in moved else stop, stop)
        for at, stop in sorted(end.positions.items())
    )


class HadoopFiles:
    """Files by Hadoop's own classes inside Spark's JVM, so that a checkpoint may lie wherever Spark can put one."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    def names(self, folder: str) -> list[str]:
        """See ``Files``."""
        path, system = self._at(folder)
        return [status.getPath().getName() for status in system.listStatus(path)] if system.exists(path) else []

    def read(self, path: str) -> str | None:
        """See ``Files``."""
        where, system = self._at(path)
        if not system.exists(where):
            return None
        stream = system.open(where)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """See ``Files``."""
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
