"""The bulk lane as a query of a pipeline. Recovery, offsets, metrics and the line for each batch are the same as in every
query; rows do not pass through Spark: tasks write files (``source``), and the driver commits them under the batch's identity."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from tidelog.pipeline.bulk.ingest import clear_orphans, joined
from tidelog.pipeline.flows import Flow
from tidelog.pipeline.lake.delta import DeltaFiles
from tidelog.pipeline.lake.landed import Verdict, judge, key_of
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.lake.table import DataFile, FileTable, Layout
from tidelog.pipeline.model import PipelineModel, SinkSpec, Source
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, Sink, SinkError
from tidelog.spark.arrow import SQL_TYPES

log = logging.getLogger("tidelog.pipeline")
DEFAULT_PARTITIONS = ("topic", "date")


def table_of(spec: SinkSpec) -> FileTable:
    """The table of a sink, by its kind."""
    path, partition_by = spec.option("path"), spec.partition_by or DEFAULT_PARTITIONS
    if spec.kind == "delta":
        return DeltaFiles(path, partition_by=partition_by)
    return ManifestTable(path, partition_by=partition_by)


class BulkSink:
    """A table of files. ``write`` gets the rows in which tasks report the files that they wrote."""

    remembers = True

    def __init__(self, spec: SinkSpec, pipeline: str, source: Source) -> None:
        self._table = table_of(spec)
        self._columns = tuple(name for name in SQL_TYPES if name != "headers" or source.headers)
        self._application = BatchIdentity(pipeline, spec.name, 0, ()).application
        self.layout: Layout | None = None

    def check(self, spark: Any) -> None:
        """Check that the table exists and fits, and delete files of attempts that will not be committed."""
        self._table.check()
        self.layout = self._table.prepare(self._columns)
        cleared = clear_orphans(self._table, self.layout, self._table.progress(self._application))
        if cleared:
            log.info("%s: deleted %d files of attempts that were not committed", self._application, cleared)

    def last_committed(self) -> BatchIdentity | None:
        """The newest batch in the table's log."""
        return self._table.progress(self._application).last

    def committed(self, identity: BatchIdentity) -> bool:
        keys = tuple(key_of(piece) for piece in identity.ranges)
        return judge(self._table.progress(self._application, keys), identity) is Verdict.LANDED

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        """Commit the files that the batch's tasks report (rows of ``source.ROW``). An empty batch is committed too, so that
        the table has it."""
        rows = batch.collect()
        _as_planned(joined(sorted(OffsetRange(r.topic, r.topic_id, r.partition, r.start, r.end) for r in rows)), identity)
        files = [DataFile.from_json(said) for row in rows for said in json.loads(row.files)]
        self._table.commit(identity, sorted(files, key=lambda file: file.path))


def _as_planned(read: tuple[OffsetRange, ...], identity: BatchIdentity) -> None:
    """SinkError unless the tasks read what the checkpoint says, or less where offsets are gone and the user accepted that."""
    planned = {(piece.topic, piece.partition): piece for piece in identity.ranges}
    for piece in read:
        whole = planned.get((piece.topic, piece.partition))
        if whole is None or piece.start < whole.start or piece.end > whole.end:
            raise SinkError(
                f"Tasks of batch {identity.batch_id} of {identity.application} read {piece.topic}-{piece.partition} "
                f"{piece.start} to {piece.end - 1}, which is not what the checkpoint says. Nothing of it was committed: another "
                "run uses this checkpoint; stop one of the two."
            )


class BulkWriter:
    """Writes the batches of one query. For one thread at a time."""

    format = "tidelog-bulk"

    def __init__(self, model: PipelineModel, flow: Flow) -> None:
        (spec,), (source,) = flow.sinks, flow.sources
        self._pipeline, self._name = model.name, spec.name
        self._sink = BulkSink(spec, model.name, source)
        self.counts = Counts()

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The only sink."""
        return {self._name: self._sink}

    @property
    def options(self) -> dict[str, str]:
        """How tasks write: see ``source.LAYOUT``."""
        from tidelog.pipeline.bulk.source import LAYOUT

        return {} if self._sink.layout is None else {LAYOUT: self._sink.layout.to_json()}

    def check(self, spark: Any) -> None:
        """Check the table and the source whose tasks write files."""
        from tidelog.pipeline.bulk.source import BulkDataSource

        self._sink.check(spark)
        spark.dataSource.register(BulkDataSource)

    def remembered(self) -> dict[str, BatchIdentity | None]:
        """The newest batch of the table."""
        return {self._name: self._sink.last_committed()}

    def write(self, frame: Any, batch_id: int, ranges: tuple[OffsetRange, ...], span: Any = None) -> None:
        """Commit a batch."""
        self._sink.write(frame, BatchIdentity(self._pipeline, self._name, batch_id, ranges))
        self.counts.records += sum(piece.end - piece.start for piece in ranges)

    def stream(self, frames: dict[str, Any]) -> Any:
        """The one stream, unchanged."""
        (frame,) = frames.values()
        return frame
