"""The driver's half of the bulk lane: start the stream, commit what tasks wrote, delete files that cannot be committed any
more.

A batch is identified by its offsets. Spark runs a batch of a dead driver again with the same offsets; the table says whether it
has them (``lake.landed``), in the commit that added the files. So a driver or an executor may die anywhere, and two drivers may
run: one commit wins, and the files of the other stay invisible until a later start deletes them.
"""

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

    ``options`` are those of the source (``format("tidelog")``); ``name`` is the writer's and must stay the same; ``trigger``
    as for Spark's ``DataStreamWriter.trigger``, ``{"availableNow": True}`` by default. A new checkpoint continues where
    the table ends. Columns are the source's, and ``date`` (UTC) where the table is partitioned by it. ConfigError or SinkError
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
        log.info("%s: deleted %d files of attempts that were not committed", name, cleared)
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
        """Commit what the tasks of a batch report (rows of ``source.ROW``). Returns whether the batch was new."""
        pieces = sorted(OffsetRange(row.topic, row.topic_id, row.partition, row.start, row.end) for row in rows)
        identity = BatchIdentity(self._pipeline, self._sink, number, joined(pieces))
        if not identity.ranges:
            return False
        for hole in missing(self._table.progress(self.application), identity):
            log.warning("%s: %s are not in the table: they were lost, or skipped by the start of the query", self._pipeline, hole)
        files = [DataFile.from_json(said) for row in rows for said in json.loads(row.files)]
        return self._table.commit(identity, sorted(files, key=lambda file: file.path))


def joined(pieces: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Ranges of one partition that follow each other become one: how Spark cut it into tasks does not matter to the table."""
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
    """Delete files of dead attempts: the table does not have them, and has their offsets from other files. Returns how many.

    Files beyond the table's offsets stay: a task may be writing them now. They are deleted after those offsets have landed.
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
