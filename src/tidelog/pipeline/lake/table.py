"""The interface of a table of files for its writers, and the description of a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from tidelog.pipeline.lake.landed import PartitionKey, Progress
from tidelog.pipeline.sinks.base import BatchIdentity


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file. ``path`` is relative to the table's data. ``columns``: name -> [lowest, highest, nulls]; the first two
    may be None. Timestamps are microseconds. ``created_ms`` is the writer's clock."""

    path: str
    rows: int
    size: int
    partition: dict[str, str] = field(default_factory=dict)
    columns: dict[str, tuple[Any, Any, int]] = field(default_factory=dict)
    created_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """The form in a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> DataFile:
        """The inverse of ``to_json``."""
        columns = {name: (span[0], span[1], int(span[2])) for name, span in said.get("columns", {}).items()}
        partition = {str(name): str(text) for name, text in said.get("partition", {}).items()}
        return cls(str(said["path"]), int(said["rows"]), int(said["size"]), partition, columns, int(said.get("created_ms", 0)))


@dataclass(frozen=True, slots=True)
class Layout:
    """How tasks write a table's files. Sent to executors.

    ``root``: a URI or a local path. ``partition_by``: of topic, partition and date (UTC, of the record's timestamp). ``keep``: a
    partition column stays in the file too. ``grouped``: the files of one batch share a directory, ``batch=<token>``.
    """

    root: str
    partition_by: tuple[str, ...] = ("topic", "date")
    keep: bool = False
    grouped: bool = False
    target_file_bytes: int = 128 << 20
    compression: str = "snappy"

    def to_json(self) -> str:
        """The form sent to executors."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """The inverse of ``to_json``."""
        said = json.loads(text)
        return cls(**{**said, "partition_by": tuple(said["partition_by"])})


class FileTable(Protocol):
    """A table to which files are added. Used by one thread of the driver."""

    def check(self) -> None:
        """SinkError when something is missing, with what to install or to change."""

    def prepare(self, names: Sequence[str]) -> Layout:
        """Create the table with these columns of the source if it does not exist. SinkError if it exists with other columns."""

    def progress(self, application: str, keys: Sequence[PartitionKey] = ()) -> Progress:
        """The progress of this application; complete for these partitions."""

    def commit(self, identity: BatchIdentity, files: Sequence[DataFile]) -> bool:
        """Add the files and the batch, both or neither. False, and nothing is added, when the table has the batch.

        SinkError when the table has other offsets under its number, or a part of its offsets.
        """

    def paths(self) -> set[str]:
        """All files that the table uses, or a version of it that can still be read."""
