"""A batch read twice instead of cached: once for the few records whose values are not plain, once for all others.

Tasks fetch, decode and return columns in one process, so neither bytes of keys and values nor JSON pass through Spark's JVM. What
compiled code does not take for plain (``spark.values``) is decoded by ``decoding``, which also finds what is wrong with it. Which
records are plain depends on their bytes and the schema alone, so the two readings of a batch always divide it in the same way.
"""

from __future__ import annotations

from typing import Any

from tidelog.client.settings import parse_settings
from tidelog.pipeline import arrow_types
from tidelog.pipeline.decoding import PLACE, SourcePlan
from tidelog.pipeline.model import Format, PipelineModel, Source
from tidelog.pipeline.plain_schemas import value_schema
from tidelog.pipeline.plain_tasks import PlainTasks
from tidelog.spark import limits, tasks, values
from tidelog.spark.arrow import SQL_TYPES
from tidelog.spark.cluster import Cluster
from tidelog.spark.options import parse_options
from tidelog.spark.planning import SourceOffset
from tidelog.spark.reader import ReadSettings, ReadTask
from tidelog.spark.values import ARROW, ValueSchema

Span = tuple[SourceOffset, SourceOffset]
"""Where a batch begins and ends."""
FEW = 1000
"""As many odd records of a batch are held by the driver; more are cached by Spark."""
_MANY_ODD = 0.1
_PAUSE = 20
_RAW = ("topic", "partition", "offset", "timestamp", "key", "value")


class PlainReader:
    """Reads the batches of one source. For one thread of the driver."""

    def __init__(self, model: PipelineModel, source: Source) -> None:
        self._source = source
        topics = {"subscribe": ",".join(source.topics)} if source.topics else {"subscribePattern": source.pattern}
        self._options = parse_options(
            {
                **{f"kafka.{name}": value for name, value in model.kafka},
                **dict(source.options),
                **topics,
                "failOnDataLoss": str(source.fail_on_data_loss).lower(),
                "includeHeaders": str(source.headers).lower(),
            },
            streaming=True,
        )
        # A connection of its own: queries plan their batches in threads of their own.
        self._cluster = Cluster(parse_settings(dict(model.kafka)))
        self._pause = 0

    def batch(self, spark: Any, plan: SourcePlan, span: Span) -> PlainBatch | None:
        """A batch to be read this way; None if it had better be read by Spark's source."""
        # PySpark 4.1 leaves the offsets of batches to its reader, which learns them by reading.
        if limits.ONE_BATCH_OF_AVAILABLE_NOW or not values.available():
            return None
        if self._pause:
            self._pause -= 1
            return None
        if str(spark.conf.get("spark.sql.legacy.timeParserPolicy")).upper() == "LEGACY":
            return None
        schema = value_schema(plan)
        if schema is None:
            return None
        found = tasks.between(self._cluster, self._options, *span)
        names = (*_RAW, "headers") if self._source.headers else _RAW
        options = self._options
        settings = ReadSettings(
            options.client, names, options.fail_on_data_loss, options.poll_timeout_ms, options.max_batch_bytes
        )
        return PlainBatch(spark, found, settings, schema, self._source.key.format is Format.TEXT)

    def learn(self, odd: int, records: int) -> None:
        """What a batch had: where many records are odd, the next batches are read by Spark's source."""
        if odd > FEW and odd > _MANY_ODD * records:
            self._pause = _PAUSE


class PlainBatch:
    """The records of one batch."""

    def __init__(self, spark: Any, found: list[ReadTask], settings: ReadSettings, schema: ValueSchema, text_keys: bool) -> None:
        self._spark = spark
        self._tasks = found
        self._settings = settings
        self._schema = schema
        self._text_keys = text_keys

    def few_odd(self) -> Any:
        """The odd records in the form of the Spark source, as a table of Arrow; None if they are more than ``FEW``."""
        if not self._tasks:
            return None
        found = self._frame("odd", self._raw_ddl(), FEW).toArrow()
        return found if found.num_rows <= FEW else None

    def from_table(self, table: Any) -> Any:
        """Odd records as a DataFrame."""
        return self._spark.createDataFrame(table, schema=self._raw_ddl())

    def odd(self) -> Any:
        """All odd records, in the form of the Spark source."""
        return self._frame("odd", self._raw_ddl(), None)

    def plain(self) -> Any:
        """All other records, as ``decoding.decoded`` makes good rows of them."""
        columns = [f"{arrow_types.quoted(field.name)} {arrow_types.ddl(ARROW[field.kind])}" for field in self._schema.fields]
        columns.append("_key string" if self._text_keys else "_key binary")
        columns += [f"{name} {SQL_TYPES[name[1:]]}" for name in PLACE]
        if "headers" in self._settings.names:
            columns.append(f"_headers {SQL_TYPES['headers']}")
        return self._frame("plain", ", ".join(columns), None)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return not self._tasks

    def _raw_ddl(self) -> str:
        return ", ".join(f"{name} {SQL_TYPES[name]}" for name in self._settings.names)

    def _frame(self, kind: str, ddl: str, most: int | None) -> Any:
        count = len(self._tasks)
        read = PlainTasks(self._settings, tuple(self._tasks), self._schema, self._text_keys, PLACE, kind == "plain", most)
        return self._spark.range(0, count, 1, max(1, count)).mapInArrow(read, ddl)
