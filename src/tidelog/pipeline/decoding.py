"""Records of a source as rows: the value's columns, ``_key``, the record's position, and what is wrong with it.

JSON is decoded by Spark's own expressions in the JVM; Avro and Protobuf by functions over Arrow batches on executors. ``_error``
is NULL for a good row; ``_raw_key`` and ``_raw_value`` are the bytes, for dead letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidelog.model.errors import ConfigError
from tidelog.pipeline import arrow_types, json_faults
from tidelog.pipeline.json_faults import UNFIT
from tidelog.pipeline.model import Decode, Format, Registry, Source
from tidelog.pipeline.payloads import Decoder, Resolved, arrow_type, resolve, to_arrow

PLACE = ("_topic", "_partition", "_offset", "_timestamp")
ASIDE = ("_error", "_raw_key", "_raw_value")
_BY_ARROW = (Format.AVRO, Format.PROTOBUF)
HEADER_BYTES = 5


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source with its schemas resolved."""

    source: Source
    key: Resolved
    value: Resolved


def plan(source: Source, registry: Registry | None) -> SourcePlan:
    """Resolve a source's schemas. Runs on the driver."""
    return SourcePlan(source, resolve(source.key, registry), resolve(source.value, registry))


def columns_of(plan: SourcePlan) -> dict[str, str]:
    """Columns of a record's value by name, with Spark's types, before any transform."""
    decode = plan.value.decode
    if decode.format in (Format.RAW, Format.TEXT):
        return {"value": "binary" if decode.format is Format.RAW else "string"}
    if decode.format is Format.JSON:
        return {field.name: field.dataType.simpleString() for field in json_schema(plan.value)[0]}
    return {field.name: arrow_types.ddl(field.type) for field in arrow_type(plan.value)}


def decoded(frame: Any, plan: SourcePlan) -> Any:
    """The rows of a DataFrame of the Spark source."""
    from pyspark.sql import functions as F

    source = plan.source
    columns = [F.col("topic").alias("_topic"), F.col("partition").alias("_partition"), F.col("offset").alias("_offset")]
    columns += [F.col("timestamp").alias("_timestamp"), F.col("key").alias("_raw_key"), F.col("value").alias("_raw_value")]
    if source.headers:
        columns.append(F.col("headers").alias("_headers"))
    rows = frame.select(*columns)
    sides = (("_key", "_raw_key", plan.key), ("_value", "_raw_value", plan.value))
    by_arrow = [(name, raw, resolved) for name, raw, resolved in sides if resolved.decode.format in _BY_ARROW]
    if by_arrow:
        rows = _with_arrow(rows, by_arrow)
    errors = []
    for name, raw, resolved in sides:
        if resolved.decode.format in _BY_ARROW:
            errors.append(F.col(name + "_error"))
        else:
            rows, error = _with_expression(rows, name, raw, resolved)
            errors.append(error)
    wrong = [
        F.when(error.isNotNull(), F.concat(F.lit(f"{what}: "), error))
        for what, error in zip(("key", "value"), errors, strict=True)
    ]
    rows = rows.withColumn("_error", F.coalesce(*wrong))
    return rows.select(*_values(rows, plan), "_key", *PLACE, *(["_headers"] if source.headers else []), *ASIDE)


def explained(wrong: Any, plan: SourcePlan) -> Any:
    """Refused rows with the details in ``_error``. Finding them costs more than decoding, so only refused rows are looked at."""
    sides = (("key", "_raw_key", plan.key), ("value", "_raw_value", plan.value))
    json_sides = [
        (what, raw, json_schema(resolved)[0], HEADER_BYTES if resolved.decode.framed else 0)
        for what, raw, resolved in sides
        if resolved.decode.format is Format.JSON
    ]
    return json_faults.explained(wrong, json_sides)


def _values(rows: Any, plan: SourcePlan) -> list[Any]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    kind = rows.schema["_value"].dataType
    if not isinstance(kind, StructType):
        return [F.col("_value").alias("value")]
    taken = [name for name in kind.names if name in (*PLACE, *ASIDE, "_key", "_headers")]
    if taken:
        raise ConfigError(f"The schema of source {plan.source.name} has a field {taken[0]}, and that name is the pipeline's own.")
    return [F.col("_value").getField(name).alias(name) for name in kind.names]


def _with_expression(rows: Any, name: str, raw: str, resolved: Resolved) -> tuple[Any, Any]:
    """Raw bytes, text and JSON: the formats that the JVM decodes alone."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    decode = resolved.decode
    if decode.format is Format.RAW:
        return rows.withColumn(name, F.col(raw)), F.lit(None).cast("string")
    text = F.col(raw).cast("string")
    not_text = F.when(~F.is_valid_utf8(text), F.lit("it is not UTF-8"))
    if decode.format is Format.TEXT:
        return rows.withColumn(name, text), not_text
    if decode.framed:
        text = F.expr(f"substring({raw}, {HEADER_BYTES + 1})").cast("string")
        not_text = F.when(
            F.expr(f"length({raw}) < 5 or substring({raw}, 1, 1) != X'00'"), F.lit("it has no schema registry header")
        )
    schema, required = json_schema(resolved)
    broken = "_tidelog_broken"
    # The type itself, not its DDL: the DDL has names as they are, and breaks at a dot or a hyphen in one.
    whole = StructType([*schema.fields, StructField(broken, StringType())])
    parsed = F.from_json(text, whole, {"columnNameOfCorruptRecord": broken, "mode": "PERMISSIVE"})
    rows = rows.withColumn(name, parsed)
    value = F.col(name)
    known = F.array(*(F.lit(field) for field in schema.names))
    extra = F.array_except(F.json_object_keys(text), known)
    error = F.when(
        F.col(raw).isNotNull(),
        F.coalesce(
            not_text,
            F.when(value.isNull() | F.ltrim(text).startswith("["), F.lit("it is not a JSON object")),
            F.when(value.getField(broken).isNotNull(), F.lit(UNFIT)),
            F.when(_goes_on(text), F.lit("there is more after its JSON object")),
            F.when(
                F.size(extra) > 0,
                F.concat(
                    F.lit("the schema has no field "), F.array_join(extra, ", "), F.lit(": add it to the schema of the source")
                ),
            ),
            *(F.when(value.getField(field).isNull(), F.lit(f"the field {field} is missing")) for field in required),
        ),
    )
    error = F.when(error.isNotNull(), error)
    rows = rows.withColumn(name + "_error", error).withColumn(name, value.dropFields(broken))
    return rows, F.col(name + "_error")


def _goes_on(text: Any) -> Any:
    """Whether there is something behind the first JSON value, where ``from_json`` stops reading. The value is counted as the
    only item of a list; that is fast, but does not accept NaN, so a slower check follows."""
    from pyspark.sql import functions as F

    listed = F.concat(F.lit("["), text, F.lit("]"))
    quick = F.coalesce(F.json_array_length(listed), F.lit(0))
    return (quick != 1) & (F.coalesce(F.size(F.from_json(listed, "array<string>")), F.lit(0)) != 1)


def json_schema(resolved: Resolved) -> tuple[Any, list[str]]:
    """The columns of a JSON source as Spark's struct, all nullable, and the names of those that are required."""
    from pyspark.sql.types import StructField, StructType

    text = resolved.schema.text if resolved.schema is not None else ""
    if text.lstrip().startswith("{"):
        try:
            schema = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"The schema begins like a JSON Schema and is not JSON: {error}.") from None
        kind = arrow_types.of_json_schema(schema)
        if not pa.types.is_struct(kind):
            raise ConfigError("The JSON Schema must be of an object with properties: they become columns.")
        ddl = ", ".join(f"{arrow_types.quoted(field.name)} {arrow_types.ddl(field.type)}" for field in kind)
        return StructType.fromDDL(ddl), [str(name) for name in schema.get("required", ())]
    try:
        struct = StructType.fromDDL(text)
    except Exception as error:
        raise ConfigError(f"The schema {text!r} is not Spark DDL (like: id bigint, name string): {str(error)[:200]}") from None
    columns = StructType([StructField(field.name, field.dataType) for field in struct])
    return columns, [field.name for field in struct if not field.nullable]


def _with_arrow(rows: Any, sides: list[tuple[str, str, Resolved]]) -> Any:
    kinds = [arrow_type(resolved) for _, _, resolved in sides]
    fields = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in rows.schema.fields)
    added = ", ".join(
        f"`{name}` {arrow_types.ddl(kind)}, `{name}_error` string" for (name, _, _), kind in zip(sides, kinds, strict=True)
    )
    return rows.mapInArrow(ArrowDecoder(sides), f"{fields}, {added}")


class ArrowDecoder:
    """The function over Arrow batches. Everything in it can be sent to executors."""

    def __init__(self, sides: list[tuple[str, str, Resolved]]) -> None:
        self._sides = sides

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the decoded columns and their errors to each batch."""
        decoders = [(name, raw, Decoder(resolved), arrow_type(resolved)) for name, raw, resolved in self._sides]
        for batch in batches:
            for name, raw, decoder, kind in decoders:
                found, errors = decoder.decode(batch.column(raw).to_pylist())
                values, said = to_arrow(found, errors, kind)
                batch = batch.append_column(name, values).append_column(name + "_error", pa.array(said, pa.string()))
            yield batch


def needs_columns(decode: Decode) -> bool:
    """Whether decoding can fail at all."""
    return decode.format is not Format.RAW
