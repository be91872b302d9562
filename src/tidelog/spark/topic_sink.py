"""The sink's interface to Spark: ``df.writeStream.format("tidelog")`` and ``df.write.format("tidelog")``.

Tasks make batches and leave them in their commit message or in the staging topic; ``commit``, on the driver, appends all of them
and the batch's number in one transaction. Why: docs/adr/0014-topics-exactly-once-from-spark.md.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tidelog.client.settings import ClientSettings
from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.spark.appending import Batch, WriteFailed
from tidelog.spark.cluster import Cluster
from tidelog.spark.committing import Committer, Numbered
from tidelog.spark.encoding import RowEncoder, check_columns
from tidelog.spark.reader import cluster_of
from tidelog.spark.rights import WRITE
from tidelog.spark.sink_options import SinkOptions
from tidelog.spark.staging import Staged, Stager, ensure_topic, staged_batches

PREFIX = "tidelog-sink-"
"""The prefix of transactional ids and groups: grant rights on it."""
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskBatches(WriterCommitMessage):
    """The batches of a task, in order: ``staged``, then ``inline`` (partition, rows, batch). ``query``: empty in a batch."""

    query: str
    staged: tuple[Staged, ...]
    inline: tuple[tuple[TopicPartition, int, bytes], ...]

    @property
    def rows(self) -> int:
        """How many rows."""
        return sum(s.rows for s in self.staged) + sum(rows for _, rows, _ in self.inline)


_writing: dict[ClientSettings, Cluster] = {}


def _writing_to(settings: ClientSettings) -> Cluster:
    """This process's connections for writing. Readers have others: they send fetches ahead."""
    found = _writing.get(settings)
    if found is None:
        found = _writing[settings] = Cluster(settings, operation=WRITE)
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class TaskWriter:
    """One task's work: Arrow batches in, a commit message out. ``spread``: any number that differs between tasks."""

    def __init__(self, options: SinkOptions, query: str, spread: int) -> None:
        self._options = options
        self._query = query
        self._spread = spread
        self._cluster = _writing_to(options.client)
        self._made: list[tuple[TopicPartition, int, bytearray]] = []
        self._held = 0
        self._staged: list[Staged] = []
        self._stager: Stager | None = None
        self._counts: dict[str, int] = {}

    def write(self, batches: Iterable[Any]) -> TaskBatches:
        """Encode all rows and put them where the driver finds them."""
        options = self._options
        encoder = RowEncoder(
            options.producer, options.topic, self._partitions, self._closed, now_ms=_now_ms(), first_partition=self._spread
        )
        for batch in batches:
            encoder.add(batch)
        encoder.finish()
        inline = tuple((at, rows, bytes(batch)) for at, rows, batch in self._made)
        return TaskBatches(self._query, tuple(self._staged), inline)

    def _partitions(self, topic: str) -> int:
        found = self._counts.get(topic)
        if found is None:
            found = self._counts[topic] = len(self._cluster.topics((topic,))[topic].leaders)
        return found

    def _closed(self, at: TopicPartition, rows: int, batch: bytearray) -> None:
        self._made.append((at, rows, batch))
        self._held += len(batch)
        if self._held > self._options.inline_bytes:
            if self._stager is None:
                options = self._options
                self._stager = Stager(
                    self._cluster,
                    options.producer,
                    options.client.answer_timeout_ms,
                    options.staging_topic,
                    self._spread,
                    _now_ms(),
                )
            self._staged += self._stager.stage(self._made)
            self._made, self._held = [], 0


def batches_of(options: SinkOptions, messages: Sequence[TaskBatches]) -> Iterator[Batch]:
    """All batches that these messages name, task by task."""
    reading = cluster_of(options.client)
    for message in messages:
        yield from staged_batches(reading, options.client, message.staged)
        for at, _, batch in message.inline:
            yield at, bytearray(batch)


def committer(options: SinkOptions, app: str, cluster: Cluster | None = None) -> Committer:
    """For batches of ``app``."""
    connected = _writing_to(options.client) if cluster is None else cluster
    return Committer(connected, options.producer, PREFIX + app, options.staging_topic, options.client.answer_timeout_ms)


def commit(options: SinkOptions, app: str | None, number: int | None, messages: Sequence[Any]) -> bool:
    """The driver's half. ``number`` None: a batch without one, written each time. False: it was there already."""
    missing = sum(not isinstance(message, TaskBatches) for message in messages)
    if missing:
        raise WriteFailed(f"{missing} of {len(messages)} tasks ended without a report of what they wrote; nothing was committed.")
    name = app if app is not None else secrets.token_hex(8)
    numbered = None if number is None else Numbered(number, options.metadata, options.first_batch)
    if numbered is not None:
        ensure_topic(_writing_to(options.client), options.staging_topic)
    elif not any(message.rows for message in messages):
        return True
    return committer(options, name).commit(numbered, lambda: batches_of(options, messages))


def _check(options: SinkOptions, schema: StructType) -> None:
    check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields], options.topic)


def _no_overwrite(overwrite: bool, what: str) -> None:
    if overwrite:
        raise ConfigError(f"Topics are appended to: {what}.")


class TidelogStreamWriter(DataSourceStreamArrowWriter):
    """Micro-batches into topics, each once."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        _no_overwrite(overwrite, 'say outputMode("append") or outputMode("update")')
        _check(options, schema)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> TaskBatches:
        """Runs on an executor."""
        context = TaskContext.get()
        assert context is not None, "a task has a context"
        query = context.getLocalProperty(_QUERY)
        if query is None:
            raise WriteFailed("Spark does not say which query this is (sql.streaming.queryId): set the option txnAppId.")
        return TaskWriter(self._options, query, context.partitionId()).write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Runs on the driver, after all tasks."""
        app = self._options.app
        if app is None:
            queries = {message.query for message in messages if isinstance(message, TaskBatches)}
            if len(queries) != 1:
                raise WriteFailed(
                    f"The tasks of batch {batchId} do not agree on the query that they belong to: {sorted(queries)}."
                )
            (app,) = queries
        commit(self._options, app, batchId, messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing is open: what tasks have staged is ignored."""


class TidelogWriter(DataSourceArrowWriter):
    """One DataFrame into topics, in one transaction; with ``txnAppId`` and ``txnVersion``, once."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        _no_overwrite(overwrite, 'say mode("append")')
        _check(options, schema)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> TaskBatches:
        """Runs on an executor."""
        context = TaskContext.get()
        return TaskWriter(self._options, "", 0 if context is None else context.partitionId()).write(iterator)

    def commit(self, messages: list[Any]) -> None:
        """Runs on the driver, after all tasks."""
        commit(self._options, self._options.app, self._options.version, messages)

    def abort(self, messages: list[Any]) -> None:
        """Nothing is open: what tasks have staged is ignored."""
