"""What is wrong with a JSON record that Spark refused: where the syntax breaks, or which fields have another type.

Spark says only that a record does not fit. The fields are found by parsing again with each field alone, the position of a syntax
error by Python's parser. Both are expensive, so only refused records are looked at.
"""

from __future__ import annotations

import json
from typing import Any

UNFIT = "JSON does not fit the schema"
"""The text of ``decoding`` for a record whose JSON Spark cannot read with the schema."""

_BROKEN = "_tidelog_broken"
_LONGEST = 100


def syntax_fault(text: bytes | None) -> str | None:
    """Where JSON breaks, in bytes from the beginning of the text; None when the syntax is right."""
    if text is None:
        return None
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        return f"it is not JSON: not UTF-8 at byte {error.start}"
    try:
        json.JSONDecoder().raw_decode(decoded, len(decoded) - len(decoded.lstrip()))
    except json.JSONDecodeError as error:
        at = len(decoded[: error.pos].encode())
        return f"it is not JSON: {error.msg[0].lower()}{error.msg[1:]} at byte {at}"
    except RecursionError:
        return "it is not JSON: nested too deeply"
    return None


def explained(rows: Any, sides: list[tuple[str, str, Any, int]]) -> Any:
    """``rows`` with the details in ``_error``. ``sides``: the name there (key, value), the column of the bytes, the schema,
    and how many bytes of header precede the JSON."""
    from pyspark.sql import functions as F

    fault = F.udf(syntax_fault, "string")
    for what, raw, schema, header in sides:
        said = F.lit(f"{what}: {UNFIT}")
        body = F.expr(f"substring({raw}, {header + 1})")
        better = F.coalesce(_wrong_fields(body.cast("string"), schema), fault(body), F.lit(UNFIT))
        rows = rows.withColumn(
            "_error", F.when(F.col("_error") == said, F.concat(F.lit(f"{what}: "), better)).otherwise(F.col("_error"))
        )
    return rows


def _wrong_fields(text: Any, schema: Any) -> Any:
    """A sentence that names the fields with values of another type; NULL when the syntax is broken."""
    from pyspark.sql import functions as F

    wrong = F.array_compact(
        F.array(
            *(
                F.when(
                    _broken(text, [field]),
                    F.concat(
                        F.lit(f"the field {field.name} is no {field.dataType.simpleString()}: "),
                        F.substring(_value(text, field.name), 1, _LONGEST),
                    ),
                )
                for field in schema.fields
            )
        )
    )
    return F.when(~_broken(text, []) & (F.size(wrong) > 0), F.array_join(wrong, "; "))


def _broken(text: Any, fields: list[Any]) -> Any:
    """Whether Spark refuses the text with these fields alone; without any field that is a syntax error."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    whole = StructType([*fields, StructField(_BROKEN, StringType())])
    parsed = F.from_json(text, whole, {"columnNameOfCorruptRecord": _BROKEN, "mode": "PERMISSIVE"})
    return parsed.getField(_BROKEN).isNotNull()


def _value(text: Any, name: str) -> Any:
    """The field's own JSON, or the content of a string."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    parsed = F.from_json(text, StructType([StructField(name, StringType())]))
    return F.coalesce(parsed.getField(name), F.lit("null"))
