"""``formats.Format`` for JSON Schema: jsonschema's meta-schemas say what is a schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any

from jsonschema import Draft7Validator, SchemaError
from jsonschema.validators import validator_for

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Difference, Document
from tidelog.registry.formats.json_schema import tags
from tidelog.registry.formats.json_schema.comparing import differences
from tidelog.registry.formats.json_schema.documents import Pool, load
from tidelog.registry.formats.tagging import Tagged
from tidelog.registry.model import compact

MAX_MIXED = 1000
MAX_INNER = 20_000
"""Schemas inside of one of 2019-09 or later: their meta-schemas take almost half a millisecond for each."""
_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "items", "prefixItems")


def canonical(document: Document, *, normalize: bool, new: bool) -> str:
    """Compact JSON; ``normalize`` sorts the keys. New schemas are those of their draft, 7 if they name none, and refer to what
    is there."""
    pool = Pool(document)
    schema = pool.root.schema
    if not isinstance(schema, dict | bool):
        raise InvalidSchema("a JSON schema is an object, true or false")
    if new:
        _check(pool)
        missing = pool.unresolved()
        if missing:
            raise InvalidSchema(f"the $ref {missing[0]!r} leads nowhere: name that schema among the references")
    if normalize:
        return json.dumps(schema, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return compact(schema)


def _check(pool: Pool) -> None:
    schema = pool.root.schema
    draft = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(draft, str | None):
        raise InvalidSchema("$schema is a text")
    mixed = next((key for inner in pool.objects() for key, each in inner.items() if _is_mixed(key, each)), None)
    if mixed is not None:
        raise InvalidSchema(f"{mixed[:80]!r} has more than {MAX_MIXED} values of several types")
    if pool.modern and sum(map(_schemas, pool.objects())) > MAX_INNER:
        raise InvalidSchema(f"it has more than {MAX_INNER} schemas inside")
    try:
        validator_for(schema, default=Draft7Validator).check_schema(schema)
    except SchemaError as problem:
        raise InvalidSchema(f"{problem.message[:400]} (at {problem.json_path[:400]})") from problem
    except RecursionError as problem:
        raise InvalidSchema("it is nested too deeply") from problem
    except OverflowError as problem:
        raise InvalidSchema(f"it has a pattern that repeats too often: {problem}") from problem
    except ValueError as problem:
        raise InvalidSchema(f"it has a URI that is none: {problem}") from problem


def _schemas(found: dict[str, Any]) -> int:
    """The object, and what it holds of the schemas true and false."""
    lists = (each for each in found.values() if isinstance(each, list))
    return 1 + sum(isinstance(each, bool) for each in (*found.values(), *chain.from_iterable(lists)))


def _is_mixed(key: str, found: Any) -> bool:
    """Whether jsonschema would need quadratic time to find out that the values are unique: it sorts what can be sorted."""
    if not isinstance(found, list) or len(found) <= MAX_MIXED or key in _OF_SCHEMAS:
        return False
    return not (all(isinstance(each, str) for each in found) or all(isinstance(each, int | float) for each in found))


def compare(reader: Document, writer: Document, *, lenient: bool) -> list[Difference]:
    """See ``Format.compare``."""
    return differences(Pool(reader), Pool(writer), lenient=lenient)


def tagged(document: Document) -> Iterable[Tagged]:
    """See ``Format.tagged``."""
    return tags.tagged(load(document.text))


def formatted(document: Document, form: str) -> str:
    """There is one form."""
    return document.text
