"""The interface to Spark: the data source ``tidelog``, its batch reader and its stream reader (its writers: ``topic_sink``).

Name: ``tidelog``. Options: ``options.NAMES`` and ``kafka.*``. Columns: ``arrow.SQL_TYPES``, those of Spark's Kafka connector; a
user's schema with fewer columns decodes no more than those. Example::

    spark.readStream.format("tidelog").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()

Readers are created in several processes and pickled between them, so they hold options only; connections belong to
the process (``reader.cluster_of``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tidelog.client.metadata import Topic
from tidelog.model.errors import ConfigError
from tidelog.model.ids import LATEST_TIMESTAMP, ZERO_UUID, TopicPartition, uuid_to_text
from tidelog.spark import tasks
from tidelog.spark.arrow import SQL_TYPES, wanted_columns
from tidelog.spark.bounds import resolve
from tidelog.spark.cluster import Cluster, TopicMissing
from tidelog.spark.filters import narrowed, pushed
from tidelog.spark.limits import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from tidelog.spark.options import SourceOptions, parse_options
from tidelog.spark.planning import OffsetRange, SourceOffset, limited, unseen
from tidelog.spark.reader import PartitionReader, ReadSettings, cluster_of
from tidelog.spark.sink_options import parse_sink_options

if TYPE_CHECKING:
    from tidelog.spark.topic_sink import TidelogStreamWriter, TidelogWriter


class TidelogDataSource(DataSource):
    """Registered by ``tidelog.spark.register``."""

    @classmethod
    def name(cls) -> str:
        """The word for ``format(...)``."""
        return "tidelog"

    def schema(self) -> str:
        """All columns; ``headers`` only if asked for. A wrong option raises here, before anything runs."""
        options = parse_options(self.options, streaming=None)
        names = [name for name in SQL_TYPES if name != "headers" or options.include_headers]
        return ", ".join(f"`{name}` {SQL_TYPES[name]}" for name in names)

    def reader(self, schema: StructType) -> TidelogReader:
        """For ``spark.read``."""
        return TidelogReader(parse_options(self.options, streaming=False), _checked(schema))

    def streamReader(self, schema: StructType) -> TidelogStreamReader:
        """For ``spark.readStream``."""
        return TidelogStreamReader(parse_options(self.options, streaming=True), _checked(schema))

    def writer(self, schema: StructType, overwrite: bool) -> TidelogWriter:
        """For ``df.write``."""
        from tidelog.spark.topic_sink import TidelogWriter  # Executors that only read do without the sink.

        return TidelogWriter(parse_sink_options(self.options, streaming=False), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> TidelogStreamWriter:
        """For ``df.writeStream``."""
        from tidelog.spark.topic_sink import TidelogStreamWriter

        return TidelogStreamWriter(parse_sink_options(self.options, streaming=True), schema, overwrite)


def _checked(schema: StructType) -> tuple[str, ...]:
    """The names of the schema's columns. ConfigError for a column that the source lacks, or with another type."""
    names = tuple(schema.fieldNames())
    wanted_columns(names)
    for field in schema.fields:
        if field.dataType.simpleString() != SQL_TYPES[field.name]:
            raise ConfigError(
                f"The schema has {field.name} as {field.dataType.simpleString()}; it is {SQL_TYPES[field.name]}: cast it later."
            )
    return names


class _Planner:
    """What both readers do before there are tasks."""

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._settings = ReadSettings(
            options.client, names, options.fail_on_data_loss, options.poll_timeout_ms, options.max_batch_bytes
        )

    @property
    def cluster(self) -> Cluster:
        """This process's connections."""
        return cluster_of(self._options.client)

    def topics(self) -> tuple[dict[str, Topic], list[TopicPartition]]:
        """The topics as they are now, and their partitions to read."""
        options = self._options
        if options.assigned is not None:
            topics = self.cluster.topics(tuple(sorted({at.topic for at in options.assigned})))
            for at in options.assigned:
                if at.partition not in topics[at.topic].leaders:
                    raise TopicMissing(f"The topic {at.topic} has {len(topics[at.topic].leaders)} partitions; assign names {at}.")
            return topics, list(options.assigned)
        topics = self.cluster.topics(options.topics, options.pattern)
        return topics, [TopicPartition(name, p) for name, topic in topics.items() for p in topic.leaders]

    def tasks(self, ranges: tuple[OffsetRange, ...], ids: dict[str, bytes]) -> list[InputPartition]:
        """The ranges cut into tasks."""
        return [InputPartition(task) for task in tasks.cut(self.cluster, self._options, ranges, ids)]

    def read_task(self, partition: InputPartition) -> Iterator[Any]:
        """Runs on an executor."""
        # Spark makes one partition of None out of an empty list.
        if partition.value is None:
            return iter(())
        return PartitionReader(cluster_of(self._options.client), self._settings, partition.value).batches()


class TidelogReader(DataSourceReader):
    """Reads a fixed range of each partition."""

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._planner = _Planner(options, names)
        self._filters: tuple[tuple[str, str, Any], ...] = ()

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Filters on topic, partition and offset shorten what is read; Spark still applies all of them."""
        self._filters = pushed(filters)
        return filters

    def partitions(self) -> list[InputPartition]:
        """The tasks."""
        planner, options = self._planner, self._options
        topics, partitions = planner.topics()
        isolation = options.client.isolation_level
        start = resolve(planner.cluster, partitions, options.starting, isolation_level=isolation, option="starting")
        end = resolve(planner.cluster, partitions, options.ending, isolation_level=isolation, option="ending")
        ranges = []
        for at in partitions:
            whole = OffsetRange(at, start[at], end[at])
            if whole.size < 0 and options.ending.offsets is not None:
                raise ConfigError(f"endingOffsets says {end[at]} for {at}, and reading starts at {start[at]}.")
            piece = narrowed(whole, self._filters)
            if piece is not None and piece.size > 0:
                ranges.append(piece)
        return planner.tasks(tuple(ranges), {name: topic.topic_id for name, topic in topics.items()})

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task as Arrow record batches."""
        return self._planner.read_task(partition)


class TidelogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches between offsets that Spark keeps in its checkpoint.

    PySpark 4.1 has no limits: it asks for the latest offset without saying where the batch begins, and of a new query before it
    asks where that begins. There the reader applies its own limit from where it last planned a batch; after a restart Spark first
    plans an empty batch at its position, from which the reader learns it.
    """

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._planner = _Planner(options, names)
        self._available: SourceOffset | None = None
        self._latest: SourceOffset | None = None
        self._last_batch_at: float | None = None
        self._planned: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins: ``startingOffsets`` and its like."""
        if self._planned is not None:
            return self._planned
        topics, partitions = self._planner.topics()
        options = self._options
        positions = resolve(
            self._planner.cluster, partitions, options.starting, isolation_level=options.client.isolation_level, option="starting"
        )
        self._planned = SourceOffset(positions, _ids(topics)).to_json()
        return self._planned

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxOffsetsPerTrigger``."""
        return ReadAllAvailable() if self._options.max_offsets is None else ReadMaxRows(self._options.max_offsets)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Where the next batch ends."""
        if start is None:
            start, limit = self._planned or self.initialOffset(), self.getDefaultReadLimit()
        begin = SourceOffset.from_json(start)
        end = self._now() if self._available is None else self._available
        if self._available is None:
            self._latest = end
        new = unseen(begin, end)
        first = tasks.earliest(self._planner.cluster, new)
        available = {at: (first[at] if at in new else begin.positions[at], stop) for at, stop in end.positions.items()}
        waiting = sum(max(0, stop - position) for position, stop in available.values())
        if self._holds_back(waiting):
            return start
        if isinstance(limit, ReadMaxRows) and waiting > limit.max_rows:
            end = SourceOffset(limited(available, limit.max_rows), end.ids)
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The latest offset at the last call: Spark shows the lag in the query's progress."""
        return None if self._latest is None else self._latest.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what is available now, and no more, in this run."""
        self._available = self._latest = self._now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch; the same ones when it runs again after a crash."""
        begin, stop = SourceOffset.from_json(start), SourceOffset.from_json(end)
        self._planned = end
        return [InputPartition(task) for task in tasks.between(self._planner.cluster, self._options, begin, stop)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task as Arrow record batches."""
        return self._planner.read_task(partition)

    def stop(self) -> None:
        """The query has ended."""
        self._planner.cluster.close()

    def _now(self) -> SourceOffset:
        topics, partitions = self._planner.topics()
        latest = self._planner.cluster.offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), self._options.client.isolation_level)
        return SourceOffset(latest, _ids(topics))

    def _holds_back(self, waiting: int) -> bool:
        """``minOffsetsPerTrigger``: too few records for a batch yet. The first batch never waits, nor one of AvailableNow."""
        options, now = self._options, time.monotonic()
        if options.min_offsets is None or self._available is not None:
            return False
        last, self._last_batch_at = self._last_batch_at, now
        if last is not None and waiting < options.min_offsets and (now - last) * 1000 < options.max_trigger_delay_ms:
            self._last_batch_at = last
            return True
        return False


def _ids(topics: dict[str, Topic]) -> dict[str, str]:
    """Topic ids as text; clusters before Kafka 2.8 have none."""
    return {name: uuid_to_text(topic.topic_id) for name, topic in topics.items() if topic.topic_id != ZERO_UUID}
