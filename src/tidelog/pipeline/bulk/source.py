"""The Spark source behind ``ingest``: its tasks write files and return one row each, which names the files.

Offsets are handled by the source ``tidelog`` (``tidelog.spark.source``): checkpoint, limits and errors about lost data are the
same. It is registered under a name that only ``ingest`` uses.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tidelog.model.errors import ConfigError
from tidelog.model.ids import ZERO_UUID, uuid_to_text
from tidelog.pipeline.bulk.files import FileWriter
from tidelog.pipeline.lake.table import Layout
from tidelog.spark.arrow import SQL_TYPES
from tidelog.spark.options import SourceOptions, parse_options
from tidelog.spark.reader import PartitionReader, ReadSettings, ReadTask, cluster_of
from tidelog.spark.source import TidelogStreamReader

FORMAT = "tidelog-bulk"
LAYOUT = "bulk.layout"
"""The option that this source adds: a Layout as JSON."""
ROW = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("files", pa.string()),
    ]
)
ROW_SQL = "topic string, topic_id string, partition int, start bigint, end bigint, files string"


def columns_of(options: SourceOptions) -> tuple[str, ...]:
    """Columns of the files: those of the source, with ``headers`` if asked for."""
    return tuple(name for name in SQL_TYPES if name != "headers" or options.include_headers)


class BulkDataSource(DataSource):
    """Registered by ``ingest``."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format(...)``."""
        return FORMAT

    def schema(self) -> str:
        """One row for each task."""
        return ROW_SQL

    def reader(self, schema: StructType) -> DataSourceReader:
        """Batch reads are not supported."""
        raise ConfigError("The bulk lane is a stream: use tidelog.pipeline.bulk.ingest.")

    def streamReader(self, schema: StructType) -> BulkStreamReader:
        """The reader that ``ingest`` streams from."""
        given = {name: text for name, text in self.options.items() if name.lower() != LAYOUT}
        return BulkStreamReader(parse_options(given, streaming=True), Layout.from_json(self.options[LAYOUT]))


class BulkStreamReader(TidelogStreamReader):
    """Offsets as in ``tidelog.spark.source``; tasks write files."""

    def __init__(self, options: SourceOptions, layout: Layout) -> None:
        super().__init__(options, columns_of(options))
        self._layout = layout

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks. All tasks of one attempt share a token."""
        token = secrets.token_hex(8)
        return [InputPartition((part.value, token)) for part in super().partitions(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Runs on an executor."""
        if partition.value is None:
            return
        task, token = partition.value
        options = self._options
        settings = ReadSettings(
            options.client, columns_of(options), options.fail_on_data_loss, options.poll_timeout_ms, options.max_batch_bytes
        )
        yield _written(task, token, self._layout, PartitionReader(cluster_of(options.client), settings, task))


def _written(task: ReadTask, token: str, layout: Layout, reader: PartitionReader) -> Any:
    """Write what the reader delivers; the task's row."""
    topic_id = "" if task.topic_id == ZERO_UUID else uuid_to_text(task.topic_id)
    writer = FileWriter(layout, task, topic_id=topic_id, token=token)
    try:
        for batch in reader.batches():
            writer.write(batch)
        files = writer.close()
    except BaseException:
        writer.discard()
        raise
    values = [task.at.topic, topic_id, task.at.partition, task.start, task.end, json.dumps([file.to_json() for file in files])]
    return pa.RecordBatch.from_arrays(
        [pa.array([value], kind) for value, kind in zip(values, ROW.types, strict=True)], schema=ROW
    )
