"""``formats.Format`` for JSON Schema: jsonschema's meta-schemas say what is a schema."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft7Validator, SchemaError
from jsonschema.validators import validator_for

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Difference, Document
from tidelog.registry.formats.json_schema.comparing import differences
from tidelog.registry.formats.json_schema.documents import Pool, load
from tidelog.registry.model import compact


def canonical(document: Document, *, normalize: bool, new: bool) -> str:
    """Compact JSON; ``normalize`` sorts the keys. New schemas are those of their draft, 7 if they name none, and refer to what
    is there."""
    pool = Pool(document)
    schema = pool.root.schema
    if not isinstance(schema, dict | bool):
        raise InvalidSchema("a JSON schema is an object, true or false")
    if new:
        _check(schema)
        missing = pool.unresolved()
        if missing:
            raise InvalidSchema(f"the $ref {missing[0]!r} leads nowhere: name that schema among the references")
    if normalize:
        return json.dumps(schema, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return compact(schema)


def _check(schema: Any) -> None:
    try:
        validator_for(schema, default=Draft7Validator).check_schema(schema)
    except SchemaError as problem:
        raise InvalidSchema(f"{problem.message[:400]} (at {problem.json_path})") from problem
    except RecursionError as problem:
        raise InvalidSchema("it is nested too deeply") from problem


def compare(reader: Document, writer: Document, *, lenient: bool) -> list[Difference]:
    """See ``Format.compare``."""
    return differences(Pool(reader), Pool(writer), lenient=lenient)


def formatted(document: Document, form: str) -> str:
    """There is one form."""
    if form not in ("", "default"):
        raise InvalidSchema(f"JSON has no format {form!r}")
    load(document.text)
    return document.text
