"""The driver's half of the bulk lane: start the stream, commit what tasks wrote, clear away what nobody will commit.

A batch is known by its offsets. Spark runs a batch of a dead driver again with the same offsets; the table says whether they
are there (``lake.landed``), in the same commit that has the files. So it does not matter where a driver or an executor died,
nor that two drivers run: one commit wins, the other one's files are seen by nobody and are cleared away by a later start."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.fs as pafs

from tidelog.model.errors import ConfigError
from tidelog.pipeline.bulk.files import file_system, range_of
from tidelog.pipeline.bulk.resuming import resume
from tidelog.pipeline.checkpoint import Checkpoint, HadoopFiles
from tidelog.pipeline.lake.landed import Progress, missing
from tidelog.pipeline.lake.table import DataFile, FileTable, Layout
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange
from tidelog.spark.options import parse_options
from tidelog.spark.reader import cluster_of

PARTITION_COLUMNS = ("topic", "partition", "date")
TRIGGERS = ("availableNow", "processingTime", "once")
log = logging.getLogger("tidelog.pipeline")


def ingest(
    spark: Any,
    *,
    name: str,
    options: Mapping[str, str],
    table: FileTable,
    checkpoint: str,
    trigger: Mapping[str, Any] | None = None,
    sink: str = "bulk",
) -> Any:
    """Start landing topics in a table of files, unchanged; the running StreamingQuery.

    ``options`` are those of the source (``format("tidelog")``); ``name`` is who writes, and must stay the same; ``trigger``
    as for Spark's ``DataStreamWriter.trigger``, ``{"availableNow": True}`` unless said. A new checkpoint goes on where the
    table ends. Columns are the source's, and ``date`` (UTC) where the table is partitioned by it. ConfigError or SinkError
    says what is wrong before anything runs."""
    import tidelog.spark
    from tidelog.pipeline.bulk.source import FORMAT, LAYOUT, BulkDataSource, columns_of

    how = dict(trigger or {"availableNow": True})
    if len(how) != 1 or next(iter(how)) not in TRIGGERS:
        raise ConfigError(f"The trigger is {how}, and must be one of {', '.join(TRIGGERS)} with its value.")
    parsed = parse_options(options, streaming=True)
    table.check()
    layout = table.prepare(columns_of(parsed))
    unknown = sorted(set(layout.partition_by) - set(PARTITION_COLUMNS))
    if unknown:
        raise ConfigError(f"The bulk lane cannot partition by {unknown[0]}, only by {', '.join(PARTITION_COLUMNS)}.")
    tidelog.spark.register(spark)
    spark.dataSource.register(BulkDataSource)
    commits = Commits(table, pipeline=name, sink=sink)
    cleared = clear_orphans(table, layout, table.progress(commits.application))
    if cleared:
        log.info("%s: %d files of attempts that were never committed are cleared away", name, cleared)
    beside = Checkpoint(HadoopFiles(spark), checkpoint)
    first, told = resume(beside, table, commits.application, cluster_of(parsed.client), parsed, options)
    stream = spark.readStream.format(FORMAT).options(**told).option(LAYOUT, layout.to_json()).load()
    writer = stream.writeStream.foreachBatch(lambda batch, number: commits.commit(batch.collect(), first + number))
    return writer.queryName(name).option("checkpointLocation", checkpoint).trigger(**how).start()


class Commits:
    """Commits the batches of one application."""

    def __init__(self, table: FileTable, *, pipeline: str, sink: str) -> None:
        self._table = table
        self._pipeline = pipeline
        self._sink = sink
        self.application = BatchIdentity(pipeline, sink, 0, ()).application

    def commit(self, rows: Sequence[Any], number: int) -> bool:
        """What the tasks of a batch said (``source.ROW``). Whether it was new."""
        pieces = sorted(OffsetRange(row.topic, row.topic_id, row.partition, row.start, row.end) for row in rows)
        identity = BatchIdentity(self._pipeline, self._sink, number, joined(pieces))
        if not identity.ranges:
            return False
        for hole in missing(self._table.progress(self.application), identity):
            log.warning("%s: %s are not in the table: they were lost, or skipped by the start of the query", self._pipeline, hole)
        files = [DataFile.from_json(said) for row in rows for said in json.loads(row.files)]
        return self._table.commit(identity, sorted(files, key=lambda file: file.path))


def joined(pieces: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Pieces of the same partition that follow each other as one: how it was cut into tasks is nobody's business."""
    found: list[OffsetRange] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is not None and (last.topic, last.topic_id, last.partition, last.end) == (
            piece.topic,
            piece.topic_id,
            piece.partition,
            piece.start,
        ):
            found[-1] = OffsetRange(piece.topic, piece.topic_id, piece.partition, last.start, piece.end)
        else:
            found.append(piece)
    return tuple(found)


def clear_orphans(table: FileTable, layout: Layout, progress: Progress) -> int:
    """Delete files of dead attempts: not in the table, and of offsets that are there by others, so that nobody can commit them.

    How many. What lies beyond the table's offsets stays: a task may be writing it now; it goes when the offsets have landed.
    """
    fs, base = file_system(layout.root)
    found = fs.get_file_info(pafs.FileSelector(base, allow_not_found=True, recursive=True))
    known: set[str] | None = None
    cleared = 0
    for info in found:
        said = range_of(info.path) if info.type == pafs.FileType.File else None
        if said is None or not _landed(progress, *said):
            continue
        if known is None:
            known = table.paths()
        if info.path.removeprefix(base).lstrip("/") not in known:
            fs.delete_file(info.path)
            cleared += 1
    return cleared


def _landed(progress: Progress, topic: str, partition: int, start: int, end: int) -> bool:
    for (name, topic_id, number), (first, following) in progress.positions.items():
        if number == partition and topic in (topic_id, name) and first <= start and end <= following:
            return True
    return False
