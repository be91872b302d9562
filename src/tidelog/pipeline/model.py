"""The model of a pipeline: frozen values that know nothing of YAML, Python functions or Spark.

Sources, transforms and sinks share one space of names, since SQL, errors and metrics name them alone. ``reading`` makes a model
from what a user wrote and gives each mistake its line; two spellings of one pipeline are equal models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Format(StrEnum):
    """The encoding of a key or a value."""

    RAW = "raw"
    TEXT = "text"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"


class Engine(StrEnum):
    """What moves the rows: Spark, batch by batch; the bulk lane, whose tasks write files themselves and pass no row through
    Spark; or Spark's own connector in real-time mode, from topic to topic."""

    SPARK = "spark"
    BULK = "bulk"
    JVM = "jvm"


class OnError(StrEnum):
    """What to do with a record that cannot be decoded."""

    DEAD_LETTERS = "dead_letters"
    DROP = "drop"
    FAIL = "fail"


class Otherwise(StrEnum):
    """What to do with a row that breaks a rule."""

    DROP = "drop"
    FAIL = "fail"
    QUARANTINE = "quarantine"


class Evolution(StrEnum):
    """What a sink does with columns that its table lacks. ``merge`` also widens types."""

    NONE = "none"
    ADD = "add"
    MERGE = "merge"


class Mode(StrEnum):
    """How a sink writes rows."""

    APPEND = "append"
    UPSERT = "upsert"


@dataclass(frozen=True, slots=True)
class Registry:
    """A schema registry with Confluent's REST API. ``timeout_ms``: how long it may be down before a batch fails."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where OpenLineage events of runs go: a URL, a file that they are appended to, the screen; any of them. ``namespace``: of
    the jobs, empty for one named after the pipeline."""

    url: str = ""
    file: str = ""
    console: bool = False
    api_key: str = field(default="", repr=False)
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Decode:
    """How bytes become columns. ``framed``: five bytes of a registry's header (and Protobuf's message index) come first.

    ``schema``: Spark's DDL or a JSON Schema for JSON, a schema's JSON for Avro; empty: the registry's newest for ``subject``.
    ``descriptor``: the file that ``protoc --include_imports --descriptor_set_out`` wrote, ``message`` the full name in it.
    """

    format: Format = Format.RAW
    schema: str = ""
    subject: str = ""
    framed: bool = False
    descriptor: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Topics that are read. ``start``: earliest, latest or milliseconds since 1970 as digits. ``options``: of the source."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    start: str = "earliest"
    max_records: int | None = None
    fail_on_data_loss: bool = True
    headers: bool = False
    key: Decode = Decode()
    value: Decode = Decode()
    on_error: OnError = OnError.DEAD_LETTERS
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition in SQL for every row. NULL breaks it."""

    name: str
    check: str
    otherwise: Otherwise = Otherwise.DROP


@dataclass(frozen=True, slots=True)
class Transform:
    """Rows from rows: ``sql``, or ``function`` (module:name), which gets the DataFrames of ``inputs`` in their order.

    ``watermark`` is (column, delay) and ``dedupe`` columns, both of the result. ``stateful``: it keeps rows of earlier batches
    (aggregates over windows, joins of streams), so Spark runs it as a stream instead of batch by batch.
    """

    name: str
    inputs: tuple[str, ...]
    sql: str = ""
    function: str = ""
    expectations: tuple[Expectation, ...] = ()
    watermark: tuple[str, str] | None = None
    dedupe: tuple[str, ...] = ()
    stateful: bool = False

    @property
    def remembers(self) -> bool:
        """Whether it needs Spark's state."""
        return self.stateful or self.watermark is not None or bool(self.dedupe)


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A sink. ``options`` are those of its kind (path, url, ...), as text."""

    name: str
    kind: str
    input: str = ""
    mode: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    order_by: str = ""
    partition_by: tuple[str, ...] = ()
    evolution: Evolution = Evolution.NONE
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str, default: str = "") -> str:
        """An option of the sink's kind, as text."""
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class PipelineModel:
    """A whole pipeline. ``functions``: the callables of a pipeline written in Python, by ``Transform.function``. They are not
    part of the model's identity, since a YAML file has only their names."""

    name: str
    kafka: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    sinks: tuple[SinkSpec, ...]
    transforms: tuple[Transform, ...] = ()
    registry: Registry | None = None
    checkpoint: str = ""
    trigger_ms: int = 1000
    group: str = ""
    dead_letters: SinkSpec | None = None
    quarantine: SinkSpec | None = None
    spark: tuple[tuple[str, str], ...] = ()
    engine: Engine = Engine.SPARK
    lineage: Lineage | None = None
    functions: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def source(self, name: str) -> Source | None:
        """The source of this name."""
        return next((source for source in self.sources if source.name == name), None)

    def transform(self, name: str) -> Transform | None:
        """The transform of this name."""
        return next((transform for transform in self.transforms if transform.name == name), None)
