"""What executors do for ``plain_reading``: fetch the records of a task, decode them, and return the plain ones or the odd ones.

Spark's Python workers import this module and what it imports, each of them when it starts: nothing here needs the rest of the
pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidelog.model.errors import ConfigError
from tidelog.spark import values
from tidelog.spark.reader import PartitionReader, ReadSettings, ReadTask, cluster_of
from tidelog.spark.values import Values, ValueSchema


@dataclass(frozen=True, slots=True)
class PlainTasks:
    """What executors do with the numbers of tasks. ``place``: names of the columns with a record's position; ``most``: end a task
    after more odd records than that."""

    settings: ReadSettings
    tasks: tuple[ReadTask, ...]
    schema: ValueSchema
    text_keys: bool
    place: tuple[str, ...]
    plain: bool
    most: int | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from self._task(self.tasks[index])

    def _task(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        decoder = values.decoder(self.schema)
        if decoder is None:
            raise ConfigError(
                "The driver's tidelog has compiled modules, and this executor's does not: install the same wheel on both."
            )
        batches = PartitionReader(cluster_of(self.settings.client), self.settings, task).batches()
        return self._plain(decoder, batches) if self.plain else self._odd(decoder, batches)

    def _plain(self, decoder: Values, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            decoded = decoder.decode(batch.column("value"), self._keys(batch))
            if decoded.count:
                rest = batch if decoded.count == batch.num_rows else batch.filter(decoded.plain)
                yield self._row(decoded.columns, rest)

    def _odd(self, decoder: Values, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = 0
        for batch in batches:
            odd, count = decoder.odd(batch.column("value"), self._keys(batch))
            if count:
                yield batch.filter(odd)
                found += count
                if self.most is not None and found > self.most:
                    return

    def _keys(self, batch: pa.RecordBatch) -> Any:
        return batch.column("key") if self.text_keys else None

    def _row(self, columns: list[Any], rest: pa.RecordBatch) -> pa.RecordBatch:
        key = rest.column("key").view(pa.string()) if self.text_keys else rest.column("key")
        names = [field.name for field in self.schema.fields]
        names += ["_key", *self.place]
        arrays = [*columns, key, *(rest.column(name[1:]) for name in self.place)]
        if "headers" in self.settings.names:
            names.append("_headers")
            arrays.append(rest.column("headers"))
        return pa.RecordBatch.from_arrays(arrays, names)
